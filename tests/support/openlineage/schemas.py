"""Check an event by OpenLineage's JSON Schemas.

The client's classes are generated from the published schemas, so that a JSON Schema of them says the same but for
formats. With a checkout of OpenLineage's `spec` folder in OPENLINEAGE_SPEC, the published files themselves are used.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import urldefrag

import msgspec
from jsonschema import Draft202012Validator
from openlineage.client import facet_v2
from openlineage.client.generated import base
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

_MODULES = (base, *(module for module in vars(facet_v2).values() if isinstance(module, ModuleType)))
_FACETS = ("facets", "inputFacets", "outputFacets")


def problems_of(event: dict[str, Any]) -> list[str]:
    """Return what does not fit the schema of an event, of its datasets, or of any facet."""
    found = list(_problems(event["schemaURL"], event))
    for place in (event["run"], event["job"], *event.get("inputs", ()), *event.get("outputs", ())):
        for facets in (place.get(kind, {}) for kind in _FACETS):
            for name, facet in facets.items():
                found += [f"{name}: {problem}" for problem in _problems(facet["_schemaURL"], facet)]
    return found


def facets_of(event: dict[str, Any]) -> set[str]:
    """Return the names of all facets of an event's datasets."""
    datasets = (*event.get("inputs", ()), *event.get("outputs", ()))
    return {name for dataset in datasets for kind in _FACETS for name in dataset.get(kind, {})}


def _problems(url: str, value: dict[str, Any]) -> Iterator[str]:
    validator = Draft202012Validator(
        {"$ref": url}, registry=_registry(), format_checker=Draft202012Validator.FORMAT_CHECKER
    )
    yield from (f"{error.json_path}: {error.message}" for error in validator.iter_errors(value))


@cache
def _registry() -> Registry[Any]:
    folder = os.environ.get("OPENLINEAGE_SPEC")
    published = _published(Path(folder)) if folder else {}

    def retrieve(url: str) -> Resource[Any]:
        return Resource.from_contents(published[url] if folder else _of_client(url), DRAFT202012)

    return Registry(retrieve=retrieve)


def _published(folder: Path) -> dict[str, dict[str, Any]]:
    files = (folder / "OpenLineage.json", *(folder / "facets").glob("*.json"))
    return {document["$id"]: document for document in (json.loads(file.read_text()) for file in files)}


def _of_client(url: str) -> dict[str, Any]:
    """Return the document of a published file, with the schemas of the client's classes."""
    members = [member for module in _MODULES for member in vars(module).values()]
    classes = {cls for cls in members if hasattr(cls, "_get_schema") and urldefrag(cls._get_schema()).url == url}
    assert classes, f"OpenLineage's client has no class of {url}"
    schemas = (msgspec.json.schema(cls, ref_template="#/$defs/{name}") for cls in classes)
    return {"$id": url, "$defs": {name: schema for found in schemas for name, schema in found["$defs"].items()}}

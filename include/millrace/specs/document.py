"""Read the parts of a spec's document, and remove the wrong parts, so that later checks can rely on the rest.

A part that is missing or has another form counts as empty.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from millrace.contracts.spec.expectation_arguments import REFERENCES, SQL
from millrace.specs.problem import Defect, KeyPath

Document = Mapping[str, Any]


def mapping_at(document: object, key: str) -> dict[str, Any]:
    """Return the mapping under a key."""
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, dict) else {}


def list_at(document: object, key: str) -> list[Any]:
    """Return the list under a key."""
    value = document.get(key) if isinstance(document, Mapping) else None
    return value if isinstance(value, list) else []


def stated_sources(document: Document) -> list[tuple[KeyPath, str]]:
    """Return the tables that the document reads, each with its key path."""
    tables: list[tuple[KeyPath, Any]] = [(("source",), document.get("source"))]
    for index, source in enumerate(list_at(document, "sources")):
        if isinstance(source, dict):
            tables.append((("sources", index, "table"), source.get("table")))
    for alias, source in mapping_at(document, "sources").items():
        if isinstance(source, dict):
            tables.append((("sources", alias, "table"), source.get("table")))
    return [(path, table) for path, table in tables if isinstance(table, str)]


def source_at(document: Document, path: KeyPath) -> object:
    """Return the entry of `sources` whose table is at `path`; None for the table of `source`."""
    entries: Any = document.get("sources")
    return entries[path[1]] if path[0] == "sources" else None


def stated_rules(document: Document) -> Iterator[tuple[KeyPath, str, dict[str, Any]]]:
    """Yield each expectation of the document: its key path, its name and its arguments."""
    for index, rule in enumerate(list_at(document, "expectations")):
        for name, arguments in rule.items() if isinstance(rule, dict) else ():
            if name == SQL and isinstance(arguments, str):
                yield ("expectations", index, name), name, {"condition": arguments}
            elif str(name).startswith("expect_") and isinstance(arguments or {}, dict):
                yield ("expectations", index, name), name, arguments or {}


def stated_references(document: Document) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    """Yield each rule that lets rows wait for another table: its key path and its arguments."""
    for path, name, arguments in stated_rules(document):
        if name in REFERENCES and document["expectations"][path[1]].get("action") == "quarantine":
            yield path, arguments


def without_defects(document: dict[str, Any], defects: Iterable[Defect]) -> dict[str, Any]:
    """Return the document with null in place of each wrong value; keys and positions stay.

    >>> without_defects({"keys": ["id", 5], "source": "x"}, [Defect(("keys", 1), "text is needed here")])
    {'keys': ['id', None], 'source': 'x'}
    """
    paths = [defect.path for defect in defects if defect.path]
    sound = copy.deepcopy(document) if paths else document
    for path in paths:
        owner: Any = sound
        for part in path[:-1]:
            owner = owner[part] if _has(owner, part) else None
        if _has(owner, path[-1]):
            owner[path[-1]] = None
    return sound


def _has(owner: Any, part: str | int) -> bool:
    return part in owner if isinstance(owner, dict) else isinstance(owner, list) and part in range(len(owner))

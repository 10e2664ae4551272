"""`lakehouse infer`: print or write a first spec for the files of a source."""

from __future__ import annotations

import re
from pathlib import Path

from include.cli.selection import relative_to_landing
from include.contracts.lake_path import S3
from include.contracts.spec.values import NAME
from include.control.landing.landing import landing_of
from include.errors import SpecError
from include.inference.first_spec import infer_spec
from include.settings import Settings


def inferred_spec(folder: str, table: str | None, settings: Settings) -> tuple[str, str]:
    """Return the name of the table and the text of its spec.

    Raises:
        SpecError: the name is not valid for a bronze table.
        NotReadyError: the folder has no file to guess from.
        BadInputError: its files cannot be read.
    """
    folder = relative_to_landing(folder, settings.landing)
    name = table or f"bronze.{re.sub(r'[^a-z0-9]+', '_', folder.removeprefix(S3).lower()).strip('_')}"
    if not re.fullmatch(rf"bronze\.{NAME}", name):
        way_out = "Write --table bronze.<name> in small letters, digits and _."
        raise SpecError(f"{name!r} is not a valid name of a bronze table", way_out)
    return name, infer_spec(landing_of(folder, settings.landing), folder.strip("/"), name)


def write_spec(tables: Path, domain: str, name: str, text: str) -> Path:
    """Write a spec to its place, and return its file.

    Raises:
        SpecError: there is a spec already, or the name of the domain is not valid.
    """
    require_domain_name(domain)
    file = tables / "bronze" / domain / f"{name.partition('.')[2]}.yaml"
    if file.exists():
        raise SpecError(f"{file} exists already, and is not overwritten", "Leave out --write to print the new spec.")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def require_domain_name(domain: str) -> None:
    """Check the name of a domain.

    Raises:
        SpecError: it is not valid.
    """
    if not re.fullmatch(NAME, domain):
        raise SpecError(f"{domain!r} is not a valid name of a domain", "Write small letters, digits and _.")

"""What `lakehouse infer` does: a first spec for what a source has delivered, printed or written."""

from __future__ import annotations

import re
from pathlib import Path

from include.cli.selection import below_landing
from include.contracts.lake_path import S3
from include.contracts.spec.values import NAME
from include.control.landing.landing import landing_of
from include.errors import SpecError
from include.inference.first_spec import infer_spec
from include.settings import Settings


def inferred_spec(folder: str, table: str | None, settings: Settings) -> tuple[str, str]:
    """(name of the table, text of its spec).

    Raises:
        SpecError: the table's name is none of a bronze table.
        NotReadyError: there is nothing in the folder to guess from.
        BadInputError: its files cannot be read.
    """
    folder = below_landing(folder, settings.landing)
    name = table or f"bronze.{re.sub(r'[^a-z0-9]+', '_', folder.removeprefix(S3).lower()).strip('_')}"
    if not re.fullmatch(rf"bronze\.{NAME}", name):
        msg = f"{name!r} cannot name a bronze table; write --table bronze.<name> in small letters, digits and _"
        raise SpecError(msg)
    return name, infer_spec(landing_of(folder, settings.landing), folder.strip("/"), name)


def write_spec(tables: Path, domain: str, name: str, text: str) -> Path:
    """Write a spec where it belongs; its file is returned.

    Raises:
        SpecError: there is a spec already, or the domain's name is none.
    """
    if not re.fullmatch(NAME, domain):
        raise SpecError(f"{domain!r} is not a valid name of a domain\nWrite --domain in small letters, digits and _.")
    file = tables / "bronze" / domain / f"{name.partition('.')[2]}.yaml"
    if file.exists():
        msg = f"{file} is there already: what people wrote is not overwritten; leave out --write to compare"
        raise SpecError(msg)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file

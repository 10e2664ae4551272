"""`lakehouse infer`: print or write first specs for the files of a source."""

from __future__ import annotations

import os
import re
from pathlib import Path

from millrace.cli.catalog import command_catalog
from millrace.cli.selection import relative_to_landing
from millrace.contracts.lake_path import S3
from millrace.contracts.spec.values import NAME
from millrace.control.landing.landing import landing_of
from millrace.control.landing.on_disk import TOP
from millrace.errors import SpecError, UnknownNameError
from millrace.inference.column_names import plain_name
from millrace.inference.new_domain import SourceTables, source_tables
from millrace.settings import Settings


def inferred_tables(folder: str, table: str | None, domain: str | None, settings: Settings) -> SourceTables:
    """Return the tables that are proposed for the files of a folder.

    Raises:
        SpecError: the name is not valid for a bronze table, or the folder is not below the landing root.
        NotReadyError: the folder has no file to guess from.
        BadInputError: its files cannot be read.
    """
    folder = landing_folder(folder, settings.landing)
    name = table or f"bronze.{plain_name(folder.removeprefix(S3))}"
    if not re.fullmatch(rf"bronze\.{NAME}", name):
        way_out = "Write --table bronze.<name> in small letters, digits and _."
        raise SpecError(f"{name!r} is not a valid name of a bronze table", way_out)
    landing = landing_of(folder, settings.landing)
    return source_tables(landing, folder, name.partition(".")[2], domain or "<domain>", ())


def landing_folder(folder: str, landing: str) -> str:
    """Return a folder as the landing names it; it need not exist.

    Raises:
        UnknownNameError: it is not below the landing root.
    """
    path = relative_to_landing(folder, landing).rstrip("/")
    if path == landing or os.path.abspath(folder) == os.path.abspath(landing) or path in ("", TOP):
        return TOP
    if path.startswith(S3):
        return path
    if os.path.isabs(path) or (os.path.isdir(folder) and not os.path.isdir(f"{landing}/{path}")):
        absolute = os.path.abspath(folder)
        raise UnknownNameError(
            f"{absolute} is not below the landing root {landing}",
            f"Put the files there, or make it the landing root of every command: export LAKEHOUSE_LANDING={absolute}",
        )
    return path


def write_source_specs(folder: Path, domain: str, tables: SourceTables) -> list[Path]:
    """Write the specs of a source into a folder of specs, and return their files. A silver spec is never replaced.

    Raises:
        SpecError: the bronze table exists already, or the name of the domain is not valid.
    """
    require_domain_name(domain)
    known = command_catalog(folder).tables if folder.exists() else ()
    texts = {"bronze": tables.bronze, "silver": tables.silver}
    files = {folder / layer / domain / f"{tables.name}.yaml": layer for layer, text in texts.items() if text}
    exist = [file for file, layer in files.items() if file.exists() or f"{layer}.{tables.name}" in known]
    if any(files[file] == "bronze" for file in exist):
        raise SpecError(
            f"the table bronze.{tables.name} has a spec already, which is not overwritten",
            "Leave out --write to print the new spec, or state another name by --table.",
        )
    new = [file for file in files if file not in exist]
    for file in new:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(texts[files[file]], encoding="utf-8")
    return new


def require_domain_name(domain: str) -> None:
    """Check the name of a domain.

    Raises:
        SpecError: it is not valid.
    """
    if not re.fullmatch(NAME, domain):
        raise SpecError(f"{domain!r} is not a valid name of a domain", "Write small letters, digits and _.")

"""Delivered files, and the first spec that is inferred from them."""

from __future__ import annotations

from pathlib import Path

import yaml

from millrace.contracts.spec.table_spec import BronzeSpec, parse_spec
from millrace.control.landing.on_disk import LocalLanding
from millrace.inference.first_spec import guessed_source


def text_of(landing: Path, folder: str = "orders") -> str:
    with guessed_source(LocalLanding(str(landing)), folder) as source:
        return source.bronze_text(f"bronze.{folder}")


def inferred(landing: Path, folder: str = "orders") -> BronzeSpec:
    return parse_spec(yaml.safe_load(text_of(landing, folder)))


def kinds(spec: BronzeSpec) -> dict[str, str]:
    return {name: column.type for name, column in spec.columns.items()}


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path

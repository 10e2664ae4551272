"""Check the folders of a bronze source: below the landing root, with valid format fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import PurePosixPath
from string import Formatter

from millrace.contracts.lake_path import S3
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.specs.document import Document, mapping_at
from millrace.specs.problem import Defect

_FIELDS = {"interval_start": datetime(2013, 1, 1, tzinfo=UTC), "interval_end": datetime(2013, 1, 2, tzinfo=UTC)}
_PATH_FIX = "write it like date={interval_start:%Y-%m-%d}, in quotes"
_FIELD = re.compile(r"interval_(start|end)(\.(year|month|day|hour|minute))?")
_NUMBER_FORM = re.compile(r"0?\d?d?")

BY_INTERVAL: str = LandingSource.model_fields["path"].default
"""The folder of one interval, if the spec does not state it."""


def check_landing(document: Document) -> Iterator[Defect]:
    """Find folders outside the landing root, and unknown format fields."""
    for key in ("landing", "path", "files"):
        text = mapping_at(document, "source").get(key, "")
        if not isinstance(text, str):
            continue
        if unprintable := next((character for character in text if not character.isprintable()), ""):
            yield Defect(("source", key), f"a file name cannot contain the character {unprintable!r}", text)
        elif key != "files":
            yield from _check_folder(key, text)


def is_continuous(document: Document) -> bool:
    """Whether a bronze table loads everything that is new: from Kafka, or from a `path` without an interval."""
    source = mapping_at(document, "source")
    path = source.get("path", BY_INTERVAL)
    return "kafka" in source or (isinstance(path, str) and not any(field in path for field in _FIELDS))


def _check_folder(key: str, text: str) -> Iterator[Defect]:
    scheme, is_url, rest = text.rpartition("://")
    if is_url and (key == "path" or f"{scheme}://" != S3):
        message = "only landing may be an address, and only of a bucket"
        yield Defect(("source", key), message, text, "write landing: s3://bucket/prefix")
    if key == "path" and (error := _format_error(text)):
        yield Defect(("source", key), error, text, _PATH_FIX)
        return
    folder = PurePosixPath(rest.format(**_FIELDS) if key == "path" else rest)
    if folder.is_absolute() or ".." in folder.parts:
        yield Defect(("source", key), "the folder must lie below the landing root", text, "write it as a relative path")


def _format_error(text: str) -> str:
    try:
        fields = [parts[1:] for parts in Formatter().parse(text) if parts[1] is not None]
    except ValueError as error:
        return f"not a Python format: {error}"
    for name, form, conversion in fields:
        match = _FIELD.fullmatch(name or "")
        if not match:
            return f"unknown field {name!r}: known are {', '.join(_FIELDS)}"
        if conversion or "{" in (form or "") or (match[2] and not _NUMBER_FORM.fullmatch(form or "")):
            return f"unknown form of {name}: {form!r}"
    return ""

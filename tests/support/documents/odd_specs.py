"""Malformed specs: real ones with a part that is replaced, left out, renamed or repeated elsewhere."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from millrace.specs.files import SpecLoader
from tests.support.documents.specs import SHIPPED

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, "", " ", "x", "a.b", "{", "{interval_start.__class__}", "../..",
    "a(", "\0", "*", "1=", "select", [], ["a"], [[]], [None], [1, "a", {}], {}, {"a": "b"}, {1: 2}, {None: 1},
    {"type": []}, {"column": ["a"]},
    {"expect_table_row_count_to_be_between": {"min_value": [1], "max_value": {}}, "action": ["drop"]},
    {"expect_column_values_to_be_unique": {"column": ["a"]}, "action": {"a": 1}, "warn": [1]},
    "decimal(99,98)", "0 hours", "99999999999 days", "999999999999 minutes", "2013-13-13", "bronze.nowhere",
    "bronze.planes", "sum(sum(a))", "'", "max_value", "interval_start",
)  # fmt: skip
SPECS = {
    file.relative_to(SHIPPED).as_posix(): yaml.load(file.read_text(), SpecLoader) for file in SHIPPED.rglob("*.yaml")
}


def paths_of_parts(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*at, key)
        yield from paths_of_parts(part, (*at, key))


def mutate(document: Any, random: random.Random) -> Any:
    """Return the document with one part replaced, left out, renamed, or replaced by a copy of another part."""
    document = copy.deepcopy(document)
    at = random.choice(list(paths_of_parts(document)))
    owner = document
    for key in at[:-1]:
        owner = owner[key]
    other = random.choice(list(paths_of_parts(document)))
    value = document
    for key in other:
        value = value[key]
    match random.randrange(5):
        case 0:
            del owner[at[-1]]
        case 1 if isinstance(owner, dict):
            owner[random.choice([1, None, True, "keyz", "", "a b", "expect_nothing", *owner])] = owner.pop(at[-1])
        case 2:
            owner[at[-1]] = copy.deepcopy(value)
        case _:
            owner[at[-1]] = copy.deepcopy(random.choice(ODD))
    return document


def write_mutated(folder: Path, random: random.Random, files: int, changes: int) -> None:
    """Write the real specs into `folder`, and change `files` of them at `changes` places each."""
    shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
    for place in random.sample(sorted(SPECS), files):
        document = SPECS[place]
        for _ in range(changes):
            document = mutate(document, random) if document else document
        Path(folder, place).write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))

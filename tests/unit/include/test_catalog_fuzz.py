"""Whatever YAML lies in the folder, its owner gets findings with file, line and key, and never a traceback."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from include.catalog import load_catalog
from include.specs.problem import SpecsRefusedError
from include.specs.sql import sql_problems
from tests.support.specs import SHIPPED, specs_of

ODD: tuple[Any, ...] = (
    None, True, False, 0, -1, 1.5, 10**30, "", " ", "x", "a.b", "{", "{interval_start.__class__}", "../..",
    "a(", "\0", "*", "1=", "select", [], ["a"], [[]], [None], [1, "a", {}], {}, {"a": "b"}, {1: 2}, {None: 1},
    {"type": []}, {"column": ["a"]},
    {"expect_table_row_count_to_be_between": {"min_value": [1], "max_value": {}}, "action": ["drop"]},
    {"expect_column_values_to_be_unique": {"column": ["a"]}, "action": {"a": 1}, "warn": [1]},
    "decimal(99,98)", "0 hours", "99999999999 days", "999999999999 minutes", "2013-13-13", "bronze.nowhere",
    "bronze.planes", "sum(sum(a))", "'", "max_value", "interval_start",
)  # fmt: skip
SPECS = specs_of(SHIPPED)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every part of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in items:
        yield (*at, key)
        yield from places(part, (*at, key))


def mutated(document: Any, random: random.Random) -> Any:
    """The document with one part replaced, left out, renamed, doubled or put in the place of another."""
    document = copy.deepcopy(document)
    at = random.choice(list(places(document)))
    owner = document
    for key in at[:-1]:
        owner = owner[key]
    other = random.choice(list(places(document)))
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


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 4), st.integers(1, 3))
def test_any_mutation_of_the_real_specs_gives_findings(random: random.Random, files: int, changes: int) -> None:
    with TemporaryDirectory() as folder:
        shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
        for place in random.sample(sorted(SPECS), files):
            document = SPECS[place]
            for _ in range(changes):
                document = mutated(document, random) if document else document
            Path(folder, place).write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False))
        assert_findings(Path(folder))


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_any_text_gives_findings(random: random.Random) -> None:
    with TemporaryDirectory() as folder:
        shutil.copytree(SHIPPED, folder, dirs_exist_ok=True)
        place = random.choice(sorted(SPECS))
        text = list(Path(folder, place).read_text())
        for _ in range(random.randint(1, 5)):
            at = random.randrange(len(text))
            text[at : at + random.randint(0, 3)] = random.choice(
                ["&a ", "*a", "!!int ", "[", "{", "\t", "\n", ": ", "- ", "\x07"]
            )
        Path(folder, place).write_text("".join(text))
        assert_findings(Path(folder))


def assert_findings(folder: Path) -> None:
    catalog = load_catalog(folder)
    problems = [*catalog.problems, *sql_problems(catalog)]
    assert str(SpecsRefusedError(problems)).count("\n") >= len(problems)
    for problem in problems:
        assert problem.file.is_relative_to(folder)
        assert 1 <= problem.line <= len(problem.file.read_text().splitlines()) + 1, problem
        assert problem.message
        assert problem.key or problem.line == 1 or "not YAML" in problem.message, problem

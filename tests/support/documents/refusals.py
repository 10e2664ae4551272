"""What a folder of specs is refused for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from include.catalog import load_catalog
from include.specs.problem import SpecProblem
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_specs


def problems_of(folder: Path) -> tuple[SpecProblem, ...]:
    """The problems for which the folder's specs are refused; none when they are taken."""
    return load_catalog(folder).problems


def the_problem(folder: Path) -> SpecProblem:
    """The one problem that there must be."""
    problems = problems_of(folder)
    assert len(problems) == 1, problems
    return problems[0]


def wrong_silver(folder: Path, **changes: Any) -> SpecProblem:
    """The one problem of a folder that is sound but for these keys of its silver table."""
    return the_problem(write_specs(folder, bronze_document(), silver_document(**changes)))


def wrong_gold(folder: Path, **changes: Any) -> SpecProblem:
    """The one problem of a folder that is sound but for these keys of its gold table."""
    return the_problem(write_specs(folder, bronze_document(), silver_document(), gold_document(**changes)))


def rule(name: str, action: str = "quarantine", **arguments: Any) -> list[dict[str, Any]]:
    """A list of one expectation."""
    return [{name: arguments, "action": action}]

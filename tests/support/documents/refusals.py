"""The problems for which a folder of specs is refused, and what `lakehouse check` says of gold specs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from millrace.catalog import load_catalog
from millrace.specs.checks.refresh import refresh_notes
from millrace.specs.checks.sql import sql_problems
from millrace.specs.problem import SpecProblem
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document, write_specs


def problems_of(folder: Path) -> tuple[SpecProblem, ...]:
    """Return the problems of the folder's specs; none if they are accepted."""
    return load_catalog(folder).problems


def only_problem(folder: Path) -> SpecProblem:
    """Return the only problem of the folder's specs."""
    problems = problems_of(folder)
    assert len(problems) == 1, problems
    return problems[0]


def problem_of_silver(folder: Path, **changes: Any) -> SpecProblem:
    """Return the only problem of a folder in which only these keys of the silver table are wrong."""
    return only_problem(write_specs(folder, bronze_document(), silver_document(**changes)))


def problem_of_gold(folder: Path, **changes: Any) -> SpecProblem:
    """Return the only problem of a folder in which only these keys of the gold table are wrong."""
    return only_problem(write_specs(folder, bronze_document(), silver_document(), gold_document(**changes)))


def assert_problem(problem: SpecProblem, key: str, message: str, fix: str) -> None:
    """Check a problem: its key, a part of its message, and the beginning of its fix."""
    assert problem.key == key
    assert message in problem.message
    assert problem.fix.startswith(fix)


def assert_rule_refused(folder: Path, expectations: Any, key: str, message: str, fix: str) -> None:
    """Check the only problem of a silver table with these expectations.

    Args:
        folder: where the specs are written.
        expectations: of the silver table; the first one is wrong.
        key: within the first expectation, or within the arguments of its rule; "" is the rule itself.
        message: is part of the message.
        fix: begins the fix.
    """
    problem = problem_of_silver(folder, expectations=expectations)
    rule_name = next(iter(expectations[0]))
    assert problem.key in (f"expectations[0].{key}", f"expectations[0].{rule_name}.{key}".rstrip("."))
    assert_problem(problem, problem.key, message, fix)


def rule(name: str, action: str = "quarantine", **arguments: Any) -> list[dict[str, Any]]:
    """Return a list of one expectation."""
    return [{name: arguments, "action": action}]


def sql_problems_of(folder: Path, *documents: Document) -> list[SpecProblem]:
    """Return what is wrong in the SQL of specs that are right otherwise."""
    catalog = load_catalog(write_specs(folder, *documents))
    assert catalog.problems == ()
    return sql_problems(catalog)


PRICES = {
    **silver_document("silver.prices"),
    "columns": {**silver_document()["columns"], "code": {"type": "string", "from": "order_id"}},
}


def joined(on: str, refresh: str, *, first: str = "day", group: str = "o.day", join: str = "left") -> Document:
    return gold_document(
        sources={"o": {"table": "silver.orders"}, "p": {"table": "silver.prices", "join": join, "on": on}},
        refresh_from={"o": first, "p": refresh},
        group_by={"day": group},
    )


def single(refresh: str, group: str, **changes: object) -> Document:
    return gold_document(refresh_from={"o": refresh}, group_by={"day": group}, **changes)


def outcome(folder: Path, document: Document) -> tuple[list[str], tuple[str, ...]]:
    """Return the texts of all problems, and the notes."""
    catalog = load_catalog(write_specs(folder, bronze_document(), silver_document(), PRICES, document))
    assert catalog.problems == ()
    spec = catalog.spec(document["table"])
    return [str(problem) for problem in sql_problems(catalog)], tuple(refresh_notes(spec, catalog.specs))  # type: ignore[arg-type]

"""Check table specs completely, including their SQL, without Spark and without data."""

from __future__ import annotations

from pathlib import Path

from include.catalog import Catalog, load_catalog
from include.specs.checks.sql import sql_problems
from include.specs.problem import SpecsRefusedError


def checked_catalog(folder: Path) -> Catalog:
    """Return the specs of `folder`, if all of them are sound, including their SQL.

    Raises:
        SpecsRefusedError: with every problem of every file.
        SpecError: there is no such folder.
    """
    catalog = load_catalog(folder)
    if problems := [*catalog.problems, *sql_problems(catalog)]:
        raise SpecsRefusedError(problems)
    return catalog

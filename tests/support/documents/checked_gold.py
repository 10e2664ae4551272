"""Gold specs with a stated refresh, and what `lakehouse check` says of them."""

from __future__ import annotations

from pathlib import Path

from include.catalog import load_catalog
from include.specs.checks.refresh import unproved_refreshes
from include.specs.checks.sql import sql_problems
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document, write_specs

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
    return [str(problem) for problem in sql_problems(catalog)], unproved_refreshes(spec, catalog.specs)  # type: ignore[arg-type]

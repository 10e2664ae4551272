"""The groups of a gold table as queries: the texts of its spec in the frame of a SELECT."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from millrace.contracts.spec.gold_query import GoldSource


def groups_as_query(sources: Mapping[str, GoldSource], group_by: Mapping[str, str], measures: Mapping[str, str]) -> str:
    """Return the SELECT that computes measures by group.

    Args:
        sources: alias -> the source, joined to those before it.
        group_by: group column -> Spark SQL.
        measures: measure -> Spark SQL aggregate.

    >>> from millrace.contracts.spec.gold_query import GoldSource
    >>> orders = GoldSource(table="silver.orders", where="amount > 0")
    >>> print(groups_as_query({"o": orders}, {"day": "o.day"}, {"n": "count(*)"}))
    SELECT
    (
    o.day
    ) AS `day`, (
    count(*)
    ) AS `n`
    FROM (SELECT * FROM `o` AS `o` WHERE (
    amount > 0
    )) AS `o`
    GROUP BY 1
    """
    # A text may end in a comment, and a constant in GROUP BY would be a position.
    columns = ", ".join(f"(\n{text}\n) AS `{name}`" for name, text in {**group_by, **measures}.items())
    positions = ", ".join(str(at) for at, _ in enumerate(group_by, 1))
    return f"SELECT\n{columns}\n{joined(sources)}\nGROUP BY {positions}"


def joined(sources: Mapping[str, GoldSource]) -> str:
    """Return FROM with the joined sources."""
    tables = []
    for alias, source in sources.items():
        rows = _rows(f"`{alias}`", alias, source)
        tables.append(f"{source.join.upper()} JOIN {rows} ON (\n{source.on}\n)" if source.join else f"FROM {rows}")
    return "\n".join(tables)


def lookup_as_query(sources: Mapping[str, GoldSource], alias: str, value: str, changed: str) -> str:
    """Return the SELECT of the values (`touched`) of the first source's rows that changed rows of another one match.

    Args:
        sources: alias -> the source, joined to those before it.
        alias: the source that has changed.
        value: the value of a row, as Spark SQL over the first source's own columns.
        changed: the view of the changed rows.
    """
    (first, source), *others = list(sources.items())[: list(sources).index(alias)]
    rows = _rows(f"`{first}`", first, source)
    others_joined = joined({first: source, **dict(others)}).removeprefix(f"FROM {rows}")
    return (
        f"SELECT DISTINCT `{first}`.`_touched` AS touched FROM (SELECT *, (\n{value}\n) AS `_touched` FROM {rows})"
        f" AS `{first}`{others_joined}\nLEFT SEMI JOIN {_rows(f'`{changed}`', alias, sources[alias])}"
        f" ON (\n{sources[alias].on}\n)"
    )


def _rows(table: str, alias: str, source: GoldSource) -> str:
    # Without an alias before it, Spark takes `WHERE (paid)` for one: the name WHERE, with the column paid.
    rows = f"{table} AS `{alias}`"
    return f"(SELECT * FROM {rows} WHERE (\n{source.where}\n)) AS `{alias}`" if source.where else rows

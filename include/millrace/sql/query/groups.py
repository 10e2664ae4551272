"""The groups of a gold table as one query: the texts of its spec in the frame of a SELECT."""

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
    tables = []
    for alias, source in sources.items():
        # Without an alias before it, Spark takes `WHERE (paid)` for one: the name WHERE, with the column paid.
        rows = f"`{alias}` AS `{alias}`"
        if source.where:
            rows = f"(SELECT * FROM {rows} WHERE (\n{source.where}\n)) AS `{alias}`"
        tables.append(f"{source.join.upper()} JOIN {rows} ON (\n{source.on}\n)" if source.join else f"FROM {rows}")
    positions = ", ".join(str(at) for at, _ in enumerate(group_by, 1))
    return "\n".join((f"SELECT\n{columns}", *tables, f"GROUP BY {positions}"))

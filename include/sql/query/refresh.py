"""How the table of a query is refreshed: by the values of one of its columns, or whole."""

from __future__ import annotations

from collections.abc import Mapping

from include.contracts.spec.table_spec import GoldSpec
from include.sql.query.select_query import query_of
from include.sql.query.trace import Trace, trace


def refresh_of(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Trace:
    """Return the column by which the table of a query is refreshed; one with a `reason` if it is computed whole.

    If the spec names no column, it is the first one that can be traced through most sources.

    Args:
        spec: the spec of a table with a query.
        columns: alias -> the columns of the source; None if they are not known.
    """
    query = spec.query or ""
    if spec.refresh == "full":
        return Trace("", reason="the spec says so")
    if spec.refresh_by is not None:
        return trace(query, spec.refresh_by, columns)
    found = [trace(query, column, columns) for column in query_of(query).columns]
    traced = [each for each in found if not each.reason]
    unread = Trace("", reason="the query cannot be read")
    return min(traced or found, key=lambda each: len(each.whole), default=unread)


def in_words(refresh: Trace) -> str:
    """Return how a table is refreshed, and why.

    >>> in_words(Trace("day", {"f": ("`day`",), "w": ("`day`",)}, {"d": "no value of d is joined to f.day"}))
    'refreshed by day, traced through f: day, w: day; whole if d changes: no value of d is joined to f.day'
    >>> in_words(Trace("day", reason="LIMIT is not traced"))
    'computed whole: LIMIT is not traced'
    """
    if refresh.reason:
        return f"computed whole: {refresh.reason}"
    values = (f"{alias}: {' and '.join(texts)}" for alias, texts in refresh.expressions.items())
    text = f"refreshed by {refresh.column}, traced through {', '.join(values)}".replace("`", "")
    return text + "".join(f"; whole if {alias} changes: {why}" for alias, why in refresh.whole.items())

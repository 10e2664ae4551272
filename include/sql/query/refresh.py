"""How the table of a query is refreshed: by the values of one of its columns, or whole."""

from __future__ import annotations

from collections.abc import Mapping

from include.contracts.spec.duration import UNBOUNDED
from include.contracts.spec.table_spec import GoldSpec
from include.sql.query.reach import in_words as reach_in_words
from include.sql.query.reads import NO_LOOKBACK
from include.sql.query.select_query import query_of
from include.sql.query.trace import Trace, trace
from include.sql.values.truncated_column import is_column, truncated_column


def refresh_of(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Trace:
    """Return the column by which the table of a query is refreshed; one with a `reason` if it is computed whole.

    If the spec names no column, it is the first one that can be traced through most sources.

    Args:
        spec: the spec of a table with a query.
        columns: alias -> the columns of the source; None if they are not known.
    """
    query = spec.query or ""
    if spec.refresh == "full":
        return Trace((), reason="the spec says so")
    if spec.refresh_columns:
        return trace(query, spec.refresh_columns, columns, spec.reach)
    found = [trace(query, column, columns) for column in query_of(query).columns]
    traced = [each for each in found if not each.reason]
    unread = Trace((), reason="the query cannot be read")
    return min(traced or found, key=lambda each: (len(each.whole), len(each.lookups)), default=unread)


def lookback_of(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> str:
    """Return the least lookback with which the stated column of a query is traced; empty if it is not with any."""
    found = trace(spec.query or "", spec.refresh_columns, columns, UNBOUNDED)
    return "" if found.reason else reach_in_words(found.reach)


def in_words(refresh: Trace) -> str:
    """Return how a table is refreshed, and why.

    >>> in_words(Trace(("day",), {"f": ("`day`",), "w": ("`day`",)}, {"d": "no value of d is joined to f.day"}))
    'refreshed by day, traced through f: day, w: day; whole if d changes: no value of d is joined to f.day'
    >>> in_words(Trace(("day",), reason="LIMIT is not traced"))
    'computed whole: LIMIT is not traced'
    >>> in_words(Trace(("name",), {"f": ("UPPER(`name`)",)}, parts={"f": (("UPPER(`name`)",),)}))
    'refreshed by name, traced through f: UPPER(name); each refresh reads all files of f'
    """
    if refresh.reason:
        return f"computed whole: {refresh.reason}"
    values = (f"{alias}: {' and '.join(texts)}" for alias, texts in refresh.expressions.items())
    later = {NO_LOOKBACK: "", UNBOUNDED: " and all later values"}
    more = later.get(refresh.lookback, f" and {reach_in_words(refresh.lookback)} after it")
    text = f"refreshed by {', '.join(refresh.columns)}{more}, traced through {', '.join(values)}".replace("`", "")
    for alias, parts in refresh.parts.items():
        if alias not in refresh.lookups and not all(any(map(_chooses_files, part)) for part in parts):
            text += f"; each refresh reads all files of {alias}"
    for alias, lookups in refresh.lookups.items():
        text += f"; if {alias} changes, found by {' or '.join(map(str, lookups))}"
    return text + "".join(f"; whole if {alias} changes: {why}" for alias, why in refresh.whole.items())


def _chooses_files(text: str) -> bool:
    """Whether the least and greatest values of a column, which Delta keeps for each file, say what a file may have."""
    return is_column(text) or truncated_column(text) is not None

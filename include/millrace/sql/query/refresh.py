"""How the table of a query is refreshed: by the values of one of its columns, or whole."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from itertools import pairwise

from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from millrace.contracts.spec.duration import UNBOUNDED
from millrace.contracts.spec.table_spec import GoldSpec
from millrace.sql.query.fields import normalized
from millrace.sql.query.grouping import reach_of_windows
from millrace.sql.query.names import Names, UntraceableError
from millrace.sql.query.parentheses import without_parentheses
from millrace.sql.query.reach import in_words as reach_in_words
from millrace.sql.query.reads import NO_LOOKBACK, as_one_text, sql_of
from millrace.sql.query.select_query import query_of
from millrace.sql.query.trace import Trace, trace
from millrace.sql.spark_text import parse_spark, places_around, tokens_of
from millrace.sql.truncated_column import is_column, truncated_column


def refresh_of(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> Trace:
    """Return the column by which a computed table is refreshed; one with a `reason` if it is computed whole.

    If the spec names no column, it is the first one that can be traced through most sources.

    Args:
        spec: the spec of the table.
        columns: alias -> the columns of the source; None if they are not known.
    """
    query = spec.select
    if spec.refresh == "full":
        return Trace((), reason="the spec says so")
    if spec.refresh_columns:
        return trace(query, spec.refresh_columns, columns, spec.reach)
    found = [trace(query, column, columns) for column in query_of(query).columns]
    traced = [each for each in found if not each.reason]
    unread = Trace((), reason="the query cannot be read")
    return min(traced or found, key=lambda each: (len(each.whole), len(each.lookups)), default=unread)


def has_other_value(found: Trace, alias: str, refresh_from: str) -> bool:
    """Whether what a spec states in `refresh_from` for a source looks otherwise than what is traced.

    >>> found = trace("SELECT trunc(f.day, 'MM') AS month, count(*) AS n FROM f GROUP BY 1", "month", {"f": ("day",)})
    >>> [has_other_value(found, "f", text) for text in ("TRUNC((day), 'MM')", "trunc(day, 'YEAR')")]
    [False, True]
    """
    tree = query_of(f"SELECT (\n{refresh_from}\n) AS value").tree
    if tree is None:
        return True
    try:
        return found.parts.get(alias) != ((sql_of(normalized(without_parentheses(tree)).selects[0].unalias()),),)
    except UntraceableError:
        return True


def value_of_column(query: str, column: str, columns: Mapping[str, tuple[str, ...] | None]) -> exp.Expr | None:
    """Return what a column of a SELECT is computed from, with each column as `<table of FROM>.<column>`.

    None stands for what cannot be said.
    """
    try:
        return _resolved(query, column, columns)[1]
    except UntraceableError:
        return None


def reach_of_measures(query: str, column: str, columns: Mapping[str, tuple[str, ...] | None]) -> timedelta:
    """Return how far before a value of a column the rows are that the windows of a SELECT see.

    Raises:
        UntraceableError: they may be later ones, or of any value.
    """
    select, value, names = _resolved(query, column, columns)
    return reach_of_windows(select, value, names, UNBOUNDED)


def _resolved(
    query: str, column: str, columns: Mapping[str, tuple[str, ...] | None]
) -> tuple[exp.Select, exp.Expr, Names]:
    tree = query_of(query).tree
    if not isinstance(tree, exp.Select):
        raise UntraceableError("it cannot be read")
    select = normalized(without_parentheses(tree))
    names = Names(select, columns)
    return select, names.resolve(select, names.definition(select, column)), names


def lookback_of(spec: GoldSpec, columns: Mapping[str, tuple[str, ...] | None]) -> str:
    """Return the least lookback with which the stated column of a table is traced; empty if it is not with any."""
    found = trace(spec.select, spec.refresh_columns, columns, UNBOUNDED)
    return "" if found.reason else reach_in_words(found.reach)


def in_words(refresh: Trace, query: str = "") -> str:
    """Return how a table is refreshed, and why, with the words of the query where it has a traced value.

    >>> in_words(Trace(("day",), {"f": ("`day`",), "w": ("`day`",)}, {"d": "no value of d is joined to f.day"}))
    'refreshed by day, traced through f: day, w: day; whole if d changes: no value of d is joined to f.day'
    >>> in_words(Trace(("day",), reason="LIMIT is not traced"))
    'computed whole: LIMIT is not traced'
    >>> in_words(Trace(("name",), {"f": ("UPPER(`name`)",)}, parts={"f": (("UPPER(`name`)",),)}))
    'refreshed by name, traced through f: UPPER(name); each refresh reads all files of f'
    >>> query = "SELECT (upper(f.`name`)) AS name, count(*) AS n FROM f GROUP BY 1"
    >>> in_words(trace(query, "name", {"f": ("name",)}), query).partition("; ")[0]
    'refreshed by name, traced through f: upper(f.`name`)'
    """
    if refresh.reason:
        return f"computed whole: {refresh.reason}"
    own, values = _own_words(query), list[str]()
    for alias, texts in refresh.expressions.items():
        of_alias = refresh.parts.get(alias) or tuple((text,) for text in texts)
        shown = (tuple(own.get(text, text.replace("`", "")) for text in each) for each in of_alias)
        values.append(f"{alias}: {' and '.join(map(as_one_text, shown))}")
    later = {NO_LOOKBACK: "", UNBOUNDED: " and all later values"}
    more = later.get(refresh.lookback, f" and {reach_in_words(refresh.lookback)} after it")
    text = f"refreshed by {', '.join(refresh.columns)}{more}, traced through {', '.join(values)}"
    for alias, parts in refresh.parts.items():
        if alias not in refresh.lookups and not all(any(map(_chooses_files, part)) for part in parts):
            text += f"; each refresh reads all files of {alias}"
    for alias, lookups in refresh.lookups.items():
        text += f"; if {alias} changes, found by {' or '.join(map(str, lookups))}"
    return text + "".join(f"; whole if {alias} changes: {why}" for alias, why in refresh.whole.items())


def _own_words(query: str) -> dict[str, str]:
    """Return what each SELECT of a query computes: the expression as a trace has it -> the words of the query."""
    tokens, words = tokens_of(query), dict[str, str]()
    for at in (at for at, token in enumerate(tokens) if token.token_type is TokenType.SELECT):
        around = [place for place in places_around(tokens, at) if place > at]
        types = {place: tokens[place].token_type for place in around}
        # In `a IS DISTINCT FROM b` it is an operator.
        froms = (place for place in around if types[place] is TokenType.FROM)
        ends = [place for place in froms if types.get(place - 1) is not TokenType.DISTINCT]
        end = ends[0] if ends else max(types, default=at) + 1
        first = at + 1 if types.get(at + 1) is TokenType.DISTINCT else at
        commas = [place for place in around if place < end and types[place] is TokenType.COMMA]
        for before, after in pairwise([first, *commas, end]):
            text = query[tokens[before].end + 1 : tokens[after - 1].end + 1]
            try:
                tree = parse_spark(f"SELECT {text}")[0]
                if isinstance(tree, exp.Select) and isinstance(tree.selects[0], exp.Alias):
                    value = normalized(without_parentheses(tree)).selects[0].unalias().unnest()
                    for column in value.find_all(exp.Column):
                        column.set("table", None)
                    own = tokens_of(text)
                    last = own[-3 if own[-2].token_type is TokenType.ALIAS else -2]
                    if not isinstance(value, exp.Column):
                        shown = text[own[0].start : last.end + 1]
                        shown = shown[1:-1] if isinstance(tree.selects[0].unalias(), exp.Paren) else shown
                        words.setdefault(sql_of(value), " ".join(shown.split()))
            except (SqlglotError, UntraceableError):
                continue
    return words


def _chooses_files(text: str) -> bool:
    """Whether the least and greatest values of a column, which Delta keeps for each file, say what a file may have."""
    return is_column(text) or truncated_column(text) is not None

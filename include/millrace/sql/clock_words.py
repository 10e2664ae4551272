"""The texts that Spark reads as the time of the run, such as 'today' where a date is needed.

Spark replaces such a text wherever it converts it to a date or a timestamp, also where nobody has written a cast: in
`day < 'today'` and in `date_add('today', 1)`. Elsewhere it is a text like any other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot import exp

from millrace.sql.spark_text import spark_name

_WORDS = re.compile(r"\s*(now|(today|tomorrow|yesterday)(?![a-z])[^'\"]*)\s*", re.IGNORECASE)

_TAKING = """
add_months convert_timezone date date_add date_diff date_format date_part date_sub date_trunc dateadd datediff datepart
day dayname dayofmonth dayofweek dayofyear extract from_utc_timestamp hour last_day minute month monthname
months_between next_day quarter second session_window timestamp timestampadd timestampdiff to_date to_timestamp
to_timestamp_ltz to_timestamp_ntz to_utc_timestamp trunc try_to_date try_to_timestamp weekday weekofyear window
window_time year
"""
_TAKE_TIMES = frozenset(_TAKING.split())
"""The functions that convert a text to a date or a timestamp."""

_GIVING = """
add_months convert_timezone date_add date_from_unix_date date_sub date_trunc dateadd from_utc_timestamp
last_day make_date make_timestamp make_timestamp_ltz make_timestamp_ntz next_day timestamp_micros timestamp_millis
timestamp_seconds to_date to_timestamp to_timestamp_ltz to_timestamp_ntz to_utc_timestamp trunc try_make_timestamp
try_make_timestamp_ltz try_make_timestamp_ntz try_to_date try_to_timestamp window_time
"""
_GIVE_TIMES = frozenset(_GIVING.split())
"""The functions whose value is a date or a timestamp."""

_CONVERSIONS = (exp.TsOrDsToDate, exp.TimeStrToTime, exp.Interval)
"""Conversions that sqlglot reads into functions; `interval 1 day + 'today'` it reads as a sum of intervals."""
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.In, exp.Between)
_OF_ONE_TYPE = (exp.Coalesce, exp.Nullif, exp.Greatest, exp.Least, exp.Array, exp.GenerateSeries, exp.DecodeCase)
_SAME_VALUE = (
    exp.AnyValue, exp.ArgMax, exp.ArgMin, exp.Filter, exp.First, exp.FirstValue, exp.IgnoreNulls, exp.Lag, exp.Last,
    exp.LastValue, exp.Lead, exp.Lower, exp.Max, exp.Min, exp.Mode, exp.Paren, exp.RespectNulls, exp.Trim, exp.Upper,
    exp.Window,
)  # fmt: skip


def clock_words(tree: exp.Expr, times: Collection[str], *, gives_time: bool = False) -> Iterator[str]:
    """Yield the texts that are the time of the run, as written.

    Args:
        tree: an expression, or a query.
        times: the names of the columns, in small letters, that are dates or timestamps.
        gives_time: whether the value of the expression is converted to a date or a timestamp.
    """
    for literal in tree.find_all(exp.Literal, exp.RawString):
        is_word = (isinstance(literal, exp.RawString) or literal.is_string) and _WORDS.fullmatch(literal.name)
        if is_word and _becomes_time(literal, times, gives_time=gives_time):
            yield literal.name


def is_time(node: exp.Expr | None, times: Collection[str]) -> bool:
    """Whether an expression is known to be a date or a timestamp.

    >>> import sqlglot
    >>> texts = ("date_trunc('DAY', x)", "max(day) - interval 1 day", "coalesce(a, day)", "upper(day)", "a")
    >>> [is_time(sqlglot.parse_one(text, dialect="spark"), ["day"]) for text in texts]
    [True, True, True, False, False]
    """
    match node:
        case exp.Column():
            return node.name.lower() in times
        case exp.Cast():
            return node.to.is_type(*exp.DataType.TEMPORAL_TYPES)
        case exp.TsOrDsToDate() | exp.TsOrDsAdd():
            return True
        case exp.Add() | exp.Sub():
            return is_time(node.this, times) != is_time(node.expression, times)
        case exp.Subquery():
            return is_time(next(iter(node.selects), None), times)
        case exp.Alias():
            return is_time(node.this, times)
        case None | exp.Lower() | exp.Upper() | exp.Trim():
            return False
        case _:
            return spark_name(node) in _GIVE_TIMES or any(is_time(each, times) for each in values_of(node))


def _becomes_time(literal: exp.Expr, times: Collection[str], *, gives_time: bool) -> bool:
    """Whether a text, or the value that it is a part of, is converted to a date or a timestamp."""
    node = literal
    while (parent := node.parent) and not isinstance(parent, exp.Query):
        if isinstance(parent, exp.Cast):
            return any(kind.is_type(*exp.DataType.TEMPORAL_TYPES) for kind in parent.to.find_all(exp.DataType))
        if isinstance(parent, _CONVERSIONS) or spark_name(parent) in _TAKE_TIMES:
            return True
        if isinstance(parent, exp.Add | exp.Sub):
            other = parent.expression if node is parent.this else parent.this
            return isinstance(other, exp.Interval) or is_time(other, times)
        if isinstance(parent, exp.If) and node.arg_key == "this":  # CASE x WHEN 'today'
            return isinstance(parent.parent, exp.Case) and is_time(parent.parent.this or None, times)
        values = parent.iter_expressions() if isinstance(parent, _COMPARISONS) else values_of(parent)
        if any(is_time(each, times) for each in values):
            return True
        if isinstance(parent, _COMPARISONS) or all(each is not node for each in values_of(parent)):
            return False
        node = parent
    return parent is None and gives_time


def values_of(node: exp.Expr) -> list[exp.Expr]:
    """Return the parts of an expression of which one is its value, or that it brings to one type."""
    match node:
        case exp.If() | exp.Nvl2():
            values = [node.args.get("true"), node.args.get("false")]
        case exp.Case():
            values = [*node.args["ifs"], node.args.get("default")]
        case _ if isinstance(node, _OF_ONE_TYPE):
            values = list(node.iter_expressions())
        case _ if isinstance(node, _SAME_VALUE):
            values = [node.this]
        case _:
            values = []
    return [value for value in values if isinstance(value, exp.Expr)]

"""Spark SQL expressions as terms: as far as it can be known, expressions that always have the same value look the same.

What sqlglot cannot parse is no term: nothing is known of its value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.errors import SqlglotError

from millrace.sql.spark_text import SPARK_TERMS

_SYNONYMS = {"YYYY": "YEAR", "YY": "YEAR", "MON": "MONTH", "MM": "MONTH", "DD": "DAY"}
_NESTED = ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "MONTH", "QUARTER", "YEAR")
"""Units of time; each is a whole number of those before it. A week is a whole number of days, and part of no other."""
_UP_TO_A_DAY = frozenset(_NESTED[: _NESTED.index("DAY") + 1])
_PARTS: dict[type[exp.Expr], str] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.DayOfMonth: "DAY", exp.DayOfWeek: "DAY",
    exp.DayOfYear: "DAY", exp.WeekOfYear: "DAY", exp.Hour: "HOUR", exp.Minute: "MINUTE", exp.Second: "SECOND",
}  # fmt: skip
"""Functions that return a part of a time as a number, with the unit on which the number depends."""
Resolve = Callable[[tuple[str, ...]], str | None]
"""Returns the full name `<alias>.<column>` for the parts of a column's name; None if the column is not known."""


@dataclass(frozen=True)
class Instant:
    """A time that is cut off below a unit; `base` is the time before.

    Attributes:
        unit: `DAY`, `MONTH` and so on; empty for the time itself.
        base: the time.
    """

    unit: str
    base: exp.Expr


def term_of(text: str, resolve: Resolve) -> exp.Expr | None:
    """Return the term of a Spark SQL expression; None if it cannot be parsed, or has a column that is not known.

    >>> of_f = lambda parts: ".".join(("f", *parts))
    >>> term_of("to_date((day))", of_f) == term_of("DAY::date", of_f)
    True
    """
    try:
        tree = SPARK_TERMS.parse(text)[0]
    except (SqlglotError, IndexError):
        return None
    if tree is None or tree.find(exp.Query):
        return None
    unknown: list[tuple[str, ...]] = []

    def resolved(parts: tuple[str, ...]) -> str:
        name = resolve(parts)
        if name is None:
            unknown.append(parts)
        return (name or "").lower()

    term = _normalized(tree, resolved)
    return None if unknown else term


def instant_of(term: exp.Expr) -> Instant:
    """Return the time that a term truncates, and the unit.

    >>> instant = instant_of(term_of("cast(date_trunc('MM', to_date(at)) as date)", ".".join))
    >>> instant.unit, instant.base.name
    ('MONTH', 'at')
    """
    unit = unit_of(term)
    if not unit:
        return Instant("", term)
    inner = instant_of(term.this)
    if not inner.unit or _is_nested(inner.unit, unit):
        return Instant(unit, inner.base)
    return inner if _is_nested(unit, inner.unit) else Instant(unit, term.this)


def unit_of(node: exp.Expr) -> str:
    """Return the unit below which the node cuts off its time; empty if it does not."""
    if isinstance(node, exp.Cast) and node.to.is_type(exp.DType.DATE):
        return "DAY"
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc) and (unit := node.args.get("unit")) is not None:
        name = unit.name.upper()
        name = _SYNONYMS.get(name, name)
        is_null = isinstance(node, exp.DateTrunc) and name in _UP_TO_A_DAY  # `trunc` knows no such unit
        return name if not is_null and (name == "WEEK" or name in _NESTED) else ""
    return ""


def _normalized(node: exp.Expr, resolve: Callable[[tuple[str, ...]], str]) -> exp.Expr:
    if isinstance(node, exp.Column):
        name = resolve(tuple(part.name for part in node.parts))
        return exp.column(exp.to_identifier(name, quoted=True))
    for child in list(node.iter_expressions()):
        child.replace(_normalized(child, resolve))
    node.comments = None
    if isinstance(node, exp.Anonymous):
        node.set("this", node.name.upper())
    return _simplified(node)


def _simplified(node: exp.Expr) -> exp.Expr:
    """Return one way to write what can be written in several; the parts of the node are simplified already."""
    if isinstance(node, exp.Paren):
        inner: exp.Expr = node.this
        return inner
    is_to_date = isinstance(node, exp.TsOrDsToDate) and not node.args.get("format")
    if is_to_date or (isinstance(node, exp.TryCast) and node.to.is_type(exp.DType.DATE)):  # so sqlglot reads `cast`
        return _simplified(exp.Cast(this=node.this.copy(), to=exp.DataType.build("date")))
    unit = unit_of(node) or _PARTS.get(type(node), "")
    while unit and (finer := unit_of(node.this)) and _is_nested(finer, unit):
        node.this.replace(node.this.this)
    return node


def _is_nested(small: str, large: str) -> bool:
    """Return whether cutting off below the small unit first changes nothing."""
    if "WEEK" in (small, large):
        return small == large or (large == "WEEK" and small in _UP_TO_A_DAY)
    return _NESTED.index(small) <= _NESTED.index(large)

"""Spark SQL expressions as terms: as far as it can be known, expressions that always have the same value look the same.

What sqlglot cannot parse is no term: nothing is known of its value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
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
_WHOLE_NUMBERS = frozenset(("tinyint", "smallint", "int", "bigint"))
_TIMES = frozenset(("date", "timestamp"))
_INEXACT = frozenset(("float", "double"))
"""The types of which equal values, 0.0 and -0.0, have two texts."""

Resolve = Callable[[tuple[str, ...]], str | None]
"""Returns the full name `<alias>.<column>` for the parts of a column's name; None if the column is not known."""

Equality = tuple[exp.Expr, exp.Expr]
"""Two terms that have the same value."""


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


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the parts of a condition that are all true when it is true."""
    if isinstance(condition, exp.And):
        yield from conjuncts(condition.this)
        yield from conjuncts(condition.expression)
    else:
        yield condition


def equalities(condition: exp.Expr, types: Mapping[str, str]) -> list[Equality]:
    """Return the terms that have the same value, also as text, where a condition is true.

    SQL also calls values of different types equal, such as 1 and '01'. Those are left out, as far as types are known.

    Args:
        condition: the term of the condition.
        types: full name of a column -> its Spark type.
    """
    pairs = [(part.this, part.expression) for part in conjuncts(condition) if isinstance(part, exp.EQ | exp.NullSafeEQ)]
    return [pair for pair in pairs if _have_same_texts(*(_type(side, types) for side in pair))]


def needed_columns(condition: exp.Expr) -> set[str]:
    """Return the columns that are not null where a condition is true, as far as the text shows it."""
    sides = (side for part in conjuncts(condition) if isinstance(part, exp.EQ) for side in (part.this, part.expression))
    bases = (instant_of(side).base for side in sides)
    return {base.name for base in bases if isinstance(base, exp.Column)}


def rewritten(term: exp.Expr, pairs: Iterable[Equality]) -> exp.Expr:
    """Return the term in which each part is replaced by the smallest one that equals it by the equalities.

    So two terms that are equal by the equalities become the same.
    """
    smaller: dict[str, exp.Expr] = {}

    def rewrite(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            for child in list(node.iter_expressions()):
                child.replace(rewrite(child))
        node = _simplified(node)
        while (found := smaller.get(_key(node))) is not None:
            node = found.copy()
        return node

    known = list(pairs)
    for _ in known:  # an equality may make the sides of an earlier one equal to something else
        for sides in known:
            small, large = sorted((rewrite(side.copy()) for side in sides), key=lambda side: (_size(side), _key(side)))
            if _key(small) != _key(large):
                smaller[_key(large)] = small
    return rewrite(term.copy())


def is_same(term: exp.Expr, other: exp.Expr, types: Mapping[str, str]) -> bool:
    """Return whether it is known that two terms always have the same value.

    A date is the same as the timestamp of its midnight.
    """
    if _key(term) == _key(other):
        return True
    (kind, base), (other_kind, other_base) = _time_function(term), _time_function(other)
    if _key(base) != _key(other_base):
        return False
    is_date = isinstance(base, exp.Column) and types.get(base.name) == "date"
    return kind == other_kind or (is_date and {kind, other_kind} <= {"", *_UP_TO_A_DAY})


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


def columns_of(term: exp.Expr) -> set[str]:
    """Return the full names of the columns of a term."""
    return {column.name for column in term.find_all(exp.Column)}


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


def _time_function(term: exp.Expr) -> tuple[str, exp.Expr]:
    """Return (what the term takes of a time, the time); ("", the term) for anything else."""
    if type(term) in _PARTS:
        return type(term).__name__, term.this
    instant = instant_of(term)
    return instant.unit, instant.base


def _type(term: exp.Expr, types: Mapping[str, str]) -> str | None:
    """Return the type of a term; empty for a column or a text of any type, None if only Spark knows it."""
    if isinstance(term, exp.Column):
        return types.get(term.name, "")
    if isinstance(term, exp.Literal):
        return "" if term.is_string else "int" if term.is_int else None
    if type(term) in _PARTS:
        return "int"
    return "timestamp" if unit_of(term) else None


def _have_same_texts(one: str | None, other: str | None) -> bool:
    if one is None or other is None or _INEXACT & {one, other}:
        return False
    return "" in (one, other) or one == other or any({one, other} <= kinds for kinds in (_TIMES, _WHOLE_NUMBERS))


def _key(term: exp.Expr) -> str:
    """Return a text that is the same for the same tree: sqlglot writes different trees as one text."""
    return repr(term)


def _size(term: exp.Expr) -> int:
    return sum(1 for _ in term.walk())

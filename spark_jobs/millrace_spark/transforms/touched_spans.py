"""The values that a batch computes as spans: too many for a list, or those that later values depend on (lookback)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from millrace.contracts.spec.column_types import TIMES_READ, TYPES, WHOLE_NUMBERS
from millrace.contracts.spec.duration import UNBOUNDED

MAX_SPANS = 50
"""If there are more, one span from the least to the greatest value takes their place."""

Span = tuple[str, str | None]
"""The first and the last value, as literals of Spark SQL; no last value means all later ones."""


@dataclass(frozen=True)
class TouchedSpans:
    """The values of `refresh_by` that a batch computes, and those whose rows it reads for that.

    Attributes:
        computed: the spans of the values that it computes.
        read: the spans of the values of the rows on which these depend; None for all rows.
        has_null: whether it also computes the rows without a value.
    """

    computed: tuple[Span, ...]
    read: tuple[tuple[str, str], ...] | None
    has_null: bool

    def is_computed(self, value: str) -> str:
        """Return Spark SQL that is true where a value, as Spark SQL, is computed."""
        return _is_within(value, self.computed, has_null=self.has_null)

    def is_read(self, value: str) -> str:
        """Return Spark SQL that is true where the row of a value is read."""
        return "true" if self.read is None else _is_within(value, self.read, has_null=self.has_null)


@dataclass(frozen=True)
class Ranges:
    """Ranges that contain all of many values.

    Attributes:
        ends: the least and the greatest value of each range, as text.
        has_null: whether null is one of the values.
    """

    ends: Sequence[tuple[str, str]]
    has_null: bool


def spans_of(touched: Sequence[str | None] | Ranges, kind: str, reach: timedelta) -> TouchedSpans | None:
    """Return what changes of rows with these values affect; None if they may affect all values.

    Args:
        touched: the values, as text, or ranges of them.
        kind: the type of `refresh_by`.
        reach: how far before a value the rows are on which it depends.
    """
    if isinstance(touched, Ranges):
        ends, has_null = touched.ends, touched.has_null
    else:
        ends, has_null = [(text, text) for text in touched if text is not None], None in touched
    if reach == UNBOUNDED:
        # Rows without a value may come before all others, or after them.
        first = _least([first for first, _ in ends], kind)
        return None if first is None or has_null else TouchedSpans(((first, None),), None, has_null=True)
    if kind in WHOLE_NUMBERS and not reach:
        suffix = TYPES[kind].literal
        whole = tuple((f"{first}{suffix}", f"{last}{suffix}") for first, last in ends)
        return TouchedSpans(whole, whole, has_null)
    if kind not in TIMES_READ:
        return None
    try:
        times = sorted({(datetime.fromisoformat(first), datetime.fromisoformat(last)) for first, last in ends})
        computed = _merged((first, last + reach) for first, last in times)
        read = _merged((first - reach, last) for first, last in computed)
    except (ValueError, OverflowError):  # years that Spark has, and Python has not
        return None
    return TouchedSpans(_literals(computed, kind), _literals(read, kind), has_null)


def _least(texts: Sequence[str], kind: str) -> str | None:
    """Return the least value as a literal; None if there is none, or if its order is not known."""
    try:
        if not texts:
            return None
        if kind in WHOLE_NUMBERS:
            return str(min(map(int, texts)))
        if kind in TIMES_READ:
            return _literal(min(map(datetime.fromisoformat, texts)), kind)
        return _text(min(texts, key=str.encode)) if kind == "string" else None
    except ValueError:
        return None


def _merged(spans: Iterable[tuple[datetime, datetime]]) -> list[tuple[datetime, datetime]]:
    """Return the spans, which begin in order, without overlaps."""
    merged: list[tuple[datetime, datetime]] = []
    for first, last in spans:
        if merged and first <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return [(merged[0][0], merged[-1][1])] if len(merged) > MAX_SPANS else merged


def _literals(spans: Iterable[tuple[datetime, datetime]], kind: str) -> tuple[tuple[str, str], ...]:
    return tuple((_literal(first, kind), _literal(last, kind)) for first, last in spans)


def _text(value: str) -> str:
    """Return a text as a literal that holds whatever a backslash or a quote means."""
    return f"decode(unhex('{value.encode().hex()}'), 'UTF-8')"


def _literal(time: datetime, kind: str) -> str:
    """Return a time as a literal; as a date it is the day on which it is."""
    return f"{TYPES[kind].literal}'{time.date() if kind == 'date' else time}'"


def _is_within(value: str, spans: Sequence[Span], *, has_null: bool) -> str:
    parts = [f"{value} >= {first}" if last is None else f"{value} BETWEEN {first} AND {last}" for first, last in spans]
    parts += [f"{value} IS NULL"] if has_null else []
    return " OR ".join(f"({part})" for part in parts) or "false"

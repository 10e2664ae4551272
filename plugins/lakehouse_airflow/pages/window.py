"""The window that the form of a backfill plan states: two days, tables, and whether rows are read again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from millrace.contracts.interval import Interval, utc_days

MOST_DAYS = 92
_TYPED = 40
"""The most characters of a wrong text that a message repeats."""


class WrongWindowError(Exception):
    """The form states no window; the message says what to type instead."""


@dataclass(frozen=True)
class Window:
    """What a plan is for.

    Attributes:
        first: the first UTC day.
        last: the last UTC day.
        tables: the chosen tables; empty for all.
        reprocess: whether silver and gold read the rows of the days again.
    """

    first: date
    last: date
    tables: tuple[str, ...] = ()
    reprocess: bool = False

    @property
    def days(self) -> tuple[Interval, ...]:
        """Its days, in order of time."""
        return utc_days(self.first, self.last)


def window_of(query: Mapping[str, str], chosen: Sequence[str], tables: Collection[str]) -> Window:
    """Return the window that an address states.

    Args:
        query: the values in the address: `first`, `last` and `reprocess`.
        chosen: the tables in the address.
        tables: the tables of the DAG.

    Raises:
        WrongWindowError: it states none, or one that is too long for a page.
    """
    first, last = _day("From", query.get("first", "")), _day("To", query.get("last", ""))
    if last < first:
        raise WrongWindowError(f"To, {last}, is before From, {first}.")
    if (number := (last - first).days + 1) > MOST_DAYS:
        raise WrongWindowError(
            f"These are {number:,} days; a page plans at most {MOST_DAYS}. `lakehouse plan` has no limit."
        )
    if unknown := [table for table in chosen if table not in tables]:
        raise WrongWindowError(f"This DAG loads no table {unknown[0][:_TYPED]!r}.")
    window = Window(first, last, tuple(dict.fromkeys(chosen)), bool(query.get("reprocess")))
    try:
        _ = window.days
    except OverflowError:
        raise WrongWindowError(f"{last} is the last day of the calendar, and has no end.") from None
    return window


def _day(name: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongWindowError(f"{name} is {text[:_TYPED]!r}, which is no day: write it as 2013-01-31.") from None

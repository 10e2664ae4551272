"""The interval: the half-open UTC window that a run processes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Self

from pydantic import AfterValidator, model_validator

from millrace.contracts.strict_model import StrictModel
from millrace.contracts.time_format import ISO_SECOND, MINUTE, SECOND


def in_utc(moment: datetime) -> datetime:
    """Return `moment` in UTC.

    Raises:
        ValueError: `moment` has no time zone, and any zone would be a guess.
    """
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone; write it as {moment.isoformat()}Z")
    return moment.astimezone(UTC)


Instant = Annotated[datetime, AfterValidator(in_utc)]


class Interval(StrictModel):
    """`[start, end)` in UTC.

    >>> str(Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC)))
    '[2013-01-01T00:00:00Z, 2013-01-02T00:00:00Z)'
    """

    start: Instant
    end: Instant

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"an interval must end after it starts: {self}")
        return self

    @property
    def label(self) -> str:
        """The interval for people, in UTC: its day, its first and last day, or its first and last minute.

        >>> from millrace.contracts.interval import Interval
        >>> ends = ("2013-01-02T00:00Z", "2013-01-08T00:00Z", "2013-01-01T06:30Z", "2013-01-02T06:00:01Z")
        >>> [Interval(start="2013-01-01T00:00Z", end=end).label for end in ends[:3]]
        ['2013-01-01', '2013-01-01 to 2013-01-07', '2013-01-01 00:00 to 06:30']
        >>> Interval(start="2013-01-01T00:00Z", end=ends[3]).label
        '2013-01-01 00:00:00 to 2013-01-02 06:00:01'
        """
        first, last = self.start.date(), (self.end - timedelta(microseconds=1)).date()
        if self.start.time() == self.end.time() == time():
            return str(first) if first == last else f"{first} to {last}"
        form = SECOND if self.start.second or self.end.second else MINUTE
        end = f"{self.end:{form}}"
        return f"{self.start:{form}} to {end.removeprefix(f'{first} ')}"

    @property
    def option(self) -> str:
        """The interval as `--interval` takes it: its day, or its two ends.

        >>> Interval(start="2013-01-01T00:00Z", end="2013-01-02T00:00Z").option
        '2013-01-01'
        >>> Interval(start="2013-01-01T00:00Z", end="2013-01-01T06:00Z").option
        '2013-01-01T00:00:00Z/2013-01-01T06:00:00Z'
        """
        is_day = self.start.time() == time() and self.end - self.start == timedelta(days=1)
        return f"{self.start:%Y-%m-%d}" if is_day else f"{self.start:{ISO_SECOND}}/{self.end:{ISO_SECOND}}"

    def __str__(self) -> str:
        return f"[{self.start:{ISO_SECOND}}, {self.end:{ISO_SECOND}})"


def utc_days(first: date, last: date) -> tuple[Interval, ...]:
    """Return the UTC days from `first` to `last`, both included; none if `last` is before `first`.

    >>> [day.label for day in utc_days(date(2013, 1, 31), date(2013, 2, 1))]
    ['2013-01-31', '2013-02-01']

    Raises:
        OverflowError: a day has no end, because it is the last one of the calendar.
    """
    midnights = [datetime.combine(first, time(), UTC) + timedelta(days=n) for n in range((last - first).days + 1)]
    return tuple(Interval(start=start, end=start + timedelta(days=1)) for start in midnights)

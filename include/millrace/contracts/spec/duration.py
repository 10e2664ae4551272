"""The durations that specs state, as `<n> <unit>`: retentions, ages and waits, each with its units."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

_PART = r"\s*'?(\d+)'?\s+(week|day|hour|minute|second|millisecond|microsecond)s?"
_INTERVAL = re.compile(rf"(?:interval)?((?:{_PART})+)\s*", re.IGNORECASE)

_LONGEST = timedelta(days=100 * 365)
UNBOUNDED = timedelta.max
"""The lookback of a value that depends on all earlier ones."""


@dataclass(frozen=True)
class DurationFormat:
    """The form of one kind of duration.

    Attributes:
        name: the kind, with its article, for error messages.
        units: the units that it takes.
        examples: valid texts, for error messages.
    """

    name: str
    units: tuple[str, ...]
    examples: str

    @property
    def pattern(self) -> str:
        """The regular expression of a valid text, as the JSON Schema of specs states it."""
        return f"^[0-9]+ ({'|'.join(self.units)})$"

    def parse(self, text: object) -> timedelta:
        """Return the duration that `text` states.

        Raises:
            ValueError: the text has another form, or states more than a hundred years.

        >>> AGE.parse("36 hours")
        datetime.timedelta(days=1, seconds=43200)
        """
        if not isinstance(text, str) or not re.fullmatch(self.pattern, text):
            raise ValueError(f"{text!r} is not {self.name}; write it as {self.examples}")
        number, unit = text.split()
        if len(number) < 10 and (duration := timedelta(**{unit: int(number)})) <= _LONGEST:
            return duration
        raise ValueError(f"{text!r} is longer than {_LONGEST.days // 365} years")


RETENTION = DurationFormat("a retention", ("hours", "days"), "'168 hours' or '7 days'")
AGE = DurationFormat("an age", ("minutes", "hours", "days"), "'90 minutes', '36 hours' or '2 days'")
WAIT = DurationFormat("a wait", ("seconds", "minutes", "hours"), "'30 seconds' or '5 minutes'")
LOOKBACK = DurationFormat("a lookback", ("hours", "days", "weeks"), "'24 hours', '7 days' or unbounded")


def interval_of(text: str) -> timedelta | None:
    """Return the length of an interval as a Delta table property states it.

    Return None for months, for years, for more than Python can count, and for other texts.

    >>> interval_of("interval 30 days").days
    30
    """
    if not (found := _INTERVAL.fullmatch(text.strip())):
        return None
    parts = re.findall(_PART, found[1], re.IGNORECASE)
    try:
        return sum((timedelta(**{f"{unit.lower()}s": int(number)}) for number, unit in parts), timedelta())
    except OverflowError:
        return None

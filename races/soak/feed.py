"""The source of a soak: a seeded feed of orders, and the expected rows of its tables."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random

from millrace.contracts.interval import Interval

DAYS, ORDERS = 8, 2_000
FIRST_DAY = datetime(2013, 1, 1, tzinfo=UTC)

SilverRow = tuple[str, int, int, date]
"""(order_id, event, amount, day)"""

GoldRow = tuple[date, int, int]
"""(day, orders, revenue)"""


@dataclass(frozen=True)
class Event:
    """One line of a landing file.

    Attributes:
        event: its unique number, the sequence of the events of an order.
        order_id: the order.
        amount: if negative, silver's row rule refuses the event.
        day: the day of the order in gold, ISO.
        op: `delete`, or `put`.
    """

    event: int
    order_id: str
    amount: int
    day: str
    op: str


@dataclass
class Feed:
    """A source that delivers files of events for days in any order.

    Attributes:
        landing: the landing root.
        chance: its source of random numbers.
        events: all delivered events.
    """

    landing: Path
    chance: Random
    events: list[Event] = field(default_factory=list)

    def deliver(self, number: int) -> None:
        """Put a file of new events into the folder of day `number`, by a rename."""
        new = [self._event() for _ in range(self.chance.randint(20, 200))]
        folder = self.landing / "orders" / f"date={interval(number).start:%Y-%m-%d}"
        folder.mkdir(parents=True, exist_ok=True)
        partial = self.landing / "arriving.json"
        partial.write_text("".join(f"{json.dumps(asdict(event))}\n" for event in new))
        partial.rename(folder / f"{new[0].event:09d}.json")

    def _event(self) -> Event:
        chance, day = self.chance, interval(self.chance.randint(1, DAYS)).start.date()
        op = "delete" if chance.random() < 0.15 else "put"
        amount = chance.randint(1, 100) * (-1 if chance.random() < 0.03 else 1)
        self.events.append(Event(len(self.events), f"o{chance.randrange(ORDERS)}", amount, day.isoformat(), op))
        return self.events[-1]


def interval(number: int) -> Interval:
    """Return day `number` of the feed, which begins with 1."""
    start = FIRST_DAY + timedelta(days=number - 1)
    return Interval(start=start, end=start + timedelta(days=1))


def refused(events: Iterable[Event]) -> Iterator[Event]:
    """Return the events that silver's rule refuses; of a delete only the key and the sequence count."""
    return (event for event in events if event.amount < 0 and event.op == "put")


def silver_rows(events: Iterable[Event]) -> set[SilverRow]:
    """Return the last state of each order after every refused event was fixed by `amount = abs(amount)` and replayed.

    >>> events = [Event(0, "a", -5, "2013-01-01", "put"), Event(1, "b", 1, "2013-01-01", "delete")]
    >>> silver_rows(events)
    {('a', 0, 5, datetime.date(2013, 1, 1))}
    """
    last = {event.order_id: event for event in sorted(events, key=lambda event: event.event)}
    return {
        (event.order_id, event.event, abs(event.amount), date.fromisoformat(event.day))
        for event in last.values()
        if event.op == "put"
    }


def gold_rows(silver: Iterable[SilverRow]) -> set[GoldRow]:
    """Return day, orders and revenue of each day."""
    by_day: dict[date, list[int]] = {}
    for _, _, amount, day in silver:
        by_day.setdefault(day, []).append(amount)
    return {(day, len(amounts), sum(amounts)) for day, amounts in by_day.items()}

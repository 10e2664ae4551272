"""The days that a backfill plan proposes: the newest for which there is data."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.deliveries import folders_of
from millrace.control.landing.landing import landing_of
from millrace.overview.tables.table_overview import TableOverview

_WEEK = timedelta(days=7)
_LISTING_S = 0.15
"""For how long landing folders are listed: the form must open at once."""


def proposed_days(
    tables: Iterable[TableOverview], landing: str, today: date, clock: Callable[[], float] = time.monotonic
) -> tuple[date, date]:
    """Return the first and the last day to propose: at most seven, which end with the newest day that has data.

    A day has data if a batch has loaded it, or if it has landing files. The folders are listed only if no batch is of
    the last seven days, and not for long, so that newer days may be missed. If no day is known, it is the last week.

    Args:
        tables: the tables of the domain.
        landing: the landing root.
        today: the present day in UTC.
        clock: returns the time in seconds.

    Raises:
        MillraceError: a landing folder cannot be read.
    """
    tables, until = list(tables), clock() + _LISTING_S
    midnight = datetime.combine(today, datetime.min.time(), UTC)
    known = [(batch.interval_start, batch.interval_end) for table in tables for batch in table.batches]
    if not any(start < midnight and end > midnight - _WEEK for start, end in known):
        sources = (table.spec.source for table in tables if isinstance(table.spec, BronzeSpec))
        feeds = [source for source in sources if isinstance(source, LandingSource)]
        known += _delivered(feeds, landing, lambda: clock() > until)
    begun = [(start, min(end, midnight)) for start, end in known if start < midnight]
    last = (max((end for _, end in begun), default=midnight) - timedelta(microseconds=1)).date()
    first = min((start.date() for start, _ in begun), default=date.min)
    return max(first, last - _WEEK + timedelta(days=1)), last


def _delivered(
    feeds: Iterable[LandingSource], landing: str, is_over: Callable[[], bool]
) -> Iterator[tuple[datetime, datetime]]:
    """Yield start and end of the intervals of landing files, until the time is over."""
    for source in feeds:
        if is_over():
            return
        folders = folders_of(source)
        files = landing_of(source.landing, landing).files(source.landing, lambda _: True) if folders else None
        for file in files or ():
            if is_over():
                return
            if folders and (interval := folders.interval(file.path)):
                yield interval.start, interval.end

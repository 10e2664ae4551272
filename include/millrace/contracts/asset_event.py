"""What the asset events that announce a certified version to DAGs consist of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval


def by_interval(table: str) -> str:
    """Return the name of the asset of a table whose events have the key of an interval.

    >>> by_interval("silver.flights")
    'silver.flights by interval'
    """
    return f"{table} by interval"


def partition_key(interval: Interval) -> str:
    """Return the key of an interval, as Airflow's partition mappers read it: its start in UTC.

    >>> from millrace.contracts.interval import Interval
    >>> partition_key(Interval(start="2013-01-01T00:00Z", end="2013-01-02T00:00Z"))
    '2013-01-01T00:00:00'
    """
    return f"{interval.start:%Y-%m-%dT%H:%M:%S}"


def event_extra(table: str, version: int | None, what: str, interval: Interval | None, **facts: Any) -> dict[str, Any]:
    """Return the extra of an event: a line for people, then facts for DAGs that wait for the table.

    Args:
        table: the table, as `<layer>.<name>`.
        version: the certified version.
        what: what happened to it, such as `3 rows applied`.
        interval: the interval of the batch; None if it is of none.
        facts: what else there is to say.

    >>> event_extra("silver.flights", 7, "rebuilt", None)
    {'summary': 'silver.flights version 7: rebuilt', 'version': 7}
    """
    day = f" for {interval.label}" if interval else ""
    span = {"interval_start": interval.start.isoformat(), "interval_end": interval.end.isoformat()} if interval else {}
    return {"summary": f"{table} version {version}{day}: {what}", **span, "version": version, **facts}


def batch_extra(
    table: str, version: int | None, interval: Interval | None, rows: Mapping[str, int], **facts: Any
) -> dict[str, Any]:
    """Return the extra of the event of a batch, with the row counts that are not 0.

    >>> batch_extra("silver.flights", 7, None, {"read": 3, "applied": 0})["summary"]
    'silver.flights version 7: 3 rows read'
    """
    counts = {action: count for action, count in rows.items() if count}
    what = ", ".join(f"{counted(count, 'row')} {action}" for action, count in counts.items()) or "certified"
    return event_extra(table, version, what, interval, rows=counts, **facts)

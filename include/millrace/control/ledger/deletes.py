"""`ops.deletes`: the deletes by absence that need a person's approval, and the approvals.

An approval is for one table, one interval, one source version and a number of keys. For a full snapshot it is valid
until a further file of that interval is loaded. For a source of events it is valid for exactly this source version.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.contracts.counted import counted
from millrace.control.ledger.ops_table import OpsTable
from millrace.paths import LakehousePaths

_TIME = pa.timestamp("us", tz="UTC")

DELETES = pa.schema(
    [
        ("recorded_at", _TIME),
        ("event", pa.string()),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("interval_start", _TIME),
        ("source", pa.string()),
        ("source_id", pa.string()),
        ("source_version", pa.int64()),
        ("keys", pa.int64()),
        ("of_keys", pa.int64()),
        ("samples", pa.list_(pa.string())),
        ("why", pa.string()),
        ("said_by", pa.string()),
        ("reason", pa.string()),
        ("run_id", pa.string()),
    ]
)


class DeleteEvent(StrEnum):
    """An event of deletes: a run asked for approval, or a person allowed them."""

    ASKED = "asked"
    ALLOWED = "allowed"


@dataclass(frozen=True)
class Deletes:
    """The deletes by absence of one batch.

    Attributes:
        table: the table.
        table_id: its Delta table id.
        interval_start: the start of the interval whose snapshot lacks the keys; else of the interval of the run.
        source: the source of the table.
        source_id: the Delta table id of the source.
        source_version: the version up to which the batch reads the source.
        keys: the number of deleted keys.
        of_keys: the number of all keys of the table.
        samples: some of the deleted keys.
        why: the cause of the deletes.
    """

    table: str
    table_id: str
    interval_start: datetime
    source: str
    source_id: str
    source_version: int
    keys: int
    of_keys: int
    samples: tuple[str, ...] = ()
    why: str = ""

    @property
    def summary(self) -> str:
        """The number of deletes and their cause, in one sentence.

        >>> from datetime import UTC
        >>> day = datetime(2013, 1, 4, tzinfo=UTC)
        >>> Deletes("silver.a", "", day, "bronze.a", "", 7, 3, 4, ("id=1",), "the file lacks them").summary
        'silver.a: 3 of 4 keys (75 %) would be deleted: the file lacks them, such as id=1.'
        """
        percent = 100 * self.keys / max(self.of_keys, 1)
        samples = f", such as {', '.join(self.samples)}" if self.samples else ""
        number = f"{self.keys:,} of {counted(self.of_keys, 'key')} ({percent:.0f} %)"
        return f"{self.table}: {number} would be deleted: {self.why}{samples}."


def refusal_message(deletes: Deletes, max_percent: int) -> str:
    """Return the message about deletes that need an approval, with the ways out."""
    return (
        f"{deletes.summary}\nThat is more than max_deleted_percent ({max_percent}): nothing was written.\n"
        + ways_to_allow(deletes.table, deletes.interval_start, deletes.source_version)
    )


def ways_to_allow(table: str, interval_start: datetime, source_version: int) -> str:
    """Return what a person can do about deletes that were refused."""
    return (
        "If the source lost them, have it deliver them again, under another name.\n"
        f"To delete them anyway: `lakehouse run --table {table} --interval {interval_start:%Y-%m-%d} --allow-deletes`; "
        f"in Airflow, the link Delete approval of this task opens the form for {table} and source version "
        f"{source_version}."
    )


def are_too_many(keys: int, of_keys: int, max_percent: int) -> bool:
    """Whether the deletes of `keys` of a table's `of_keys` keys need an approval.

    The percentage is rounded up to whole keys, so that a small table can lose one. The deletes of all keys always need
    an approval, unless the percentage is 100.

    >>> [are_too_many(keys, 3, 20) for keys in (0, 1, 2)], are_too_many(21, 100, 20), are_too_many(1, 1, 20)
    ([False, False, True], True, True)
    >>> are_too_many(3, 3, 100), are_too_many(1, 1000, 0)
    (False, True)
    """
    return keys > math.ceil(of_keys * max_percent / 100) or (0 < keys == of_keys and max_percent < 100)


class DeleteRecords:
    """Reads and writes `ops.deletes` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "deletes", DELETES)

    def tables(self) -> set[str]:
        """Return the tables about which something was ever asked."""
        return self._events.tables()

    def record_asked(self, deletes: Deletes, run_id: str) -> None:
        """Record that a run stopped before these deletes."""
        self._events.append([_event(DeleteEvent.ASKED, deletes, "", "", run_id)])

    def record_allowed(self, deletes: Deletes, *, said_by: str, reason: str, run_id: str) -> None:
        """Record that a person allows these deletes."""
        self._events.append([_event(DeleteEvent.ALLOWED, deletes, said_by, reason, run_id)])

    def pending_deletes(self, table: str) -> list[Deletes]:
        """Return the deletes of the table for which a run asked and that nobody has allowed, oldest first."""
        pending: dict[tuple[str, datetime, str, int], Deletes] = {}
        for row in self._events.events(table):
            deletes = _deletes(row)
            key = (deletes.table_id, deletes.interval_start, deletes.source_id, deletes.source_version)
            pending.pop(key, None)
            if row["event"] == DeleteEvent.ASKED:
                pending[key] = deletes
        return list(pending.values())

    def pending_deletes_at(self, table: str, table_id: str, source_id: str, source_version: int) -> Deletes | None:
        """Return the last pending deletes for a version of the source; None if there are none."""
        key = (table_id, source_id, source_version)
        pending = self.pending_deletes(table)
        matching = (each for each in pending if (each.table_id, each.source_id, each.source_version) == key)
        return max(matching, key=lambda deletes: deletes.interval_start, default=None)

    def allowed_deletes(self, table: str, table_id: str, source_id: str) -> list[Deletes]:
        """Return the deletes that a person has allowed, for the table and the source with these ids."""
        rows = self._events.events(table, table_id=table_id, source_id=source_id, event=DeleteEvent.ALLOWED)
        return [_deletes(row) for row in rows]

    def all_allowed_deletes(self, table: str) -> list[Deletes]:
        """Return the deletes that a person has allowed, for every table that ever had this name."""
        return [_deletes(row) for row in self._events.events(table, event=DeleteEvent.ALLOWED)]


def are_allowed(
    allowed: Collection[Deletes], keys: int, since: int, upto: int, interval_start: datetime | None = None
) -> bool:
    """Whether a person has allowed the deletes of a batch.

    Args:
        allowed: the deletes that persons have allowed, for this table and this source.
        keys: the number of keys that the batch deletes.
        since: the last version of the source that changed the deletes of the batch.
        upto: the version up to which the batch reads the source.
        interval_start: the start of the interval whose snapshot lacks the keys; None if the run of any interval may
            delete them.

    >>> from datetime import UTC
    >>> day = datetime(2013, 1, 4, tzinfo=UTC)
    >>> allowed = [Deletes("silver.a", "", day, "bronze.a", "", 7, 25, 100)]
    >>> [are_allowed(allowed, keys, 6, 9, day) for keys in (25, 26)], are_allowed(allowed, 25, 8, 9, day)
    ([True, False], False)
    """
    return any(
        interval_start in (None, each.interval_start) and keys <= each.keys and since <= each.source_version <= upto
        for each in allowed
    )


def next_allowed_version(allowed: Collection[Deletes], after: int | None, upto: int) -> int:
    """Return the version up to which a batch reads its source: the first one with allowed deletes, else the newest.

    The person has allowed only the deletes up to that version.
    """
    versions = [each.source_version for each in allowed]
    return min((version for version in versions if (-1 if after is None else after) < version < upto), default=upto)


def _event(event: DeleteEvent, deletes: Deletes, said_by: str, reason: str, run_id: str) -> dict[str, Any]:
    decision = {"said_by": said_by, "reason": reason, "run_id": run_id}
    return {"event": event.value, **vars(deletes), "samples": list(deletes.samples), **decision}


def _deletes(row: dict[str, Any]) -> Deletes:
    fields = {name: row[name] for name in Deletes.__dataclass_fields__}
    return Deletes(**{**fields, "samples": tuple(row["samples"] or ())})

"""`ops.deletes`: the deletes by absence that were too many to pass unasked, and who allowed which of them.

An allowance is of one table, and of so many keys as one interval's snapshot lacks, as its source stood at one version:
it holds until a further file of that interval is loaded. Below a source of events it is of exactly one version.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from include.control.ledger.ops_table import OpsTable
from include.paths import LakehousePaths

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
    """What is said of deletes: a run asked for them, or a person allowed them."""

    ASKED = "asked"
    ALLOWED = "allowed"


@dataclass(frozen=True)
class Deletes:
    """Deletes by absence, as one batch would make them.

    Attributes:
        table: the table.
        table_id: Delta's id of it.
        interval_start: start of the interval whose snapshot lacks the keys; of the run's interval for other tables.
        source: the table's source.
        source_id: Delta's id of it.
        source_version: the version up to which the batch reads it.
        keys: how many keys go.
        of_keys: of how many.
        samples: some of them.
        why: what makes them go.
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
        """How many go, and why.

        >>> from datetime import UTC
        >>> day = datetime(2013, 1, 4, tzinfo=UTC)
        >>> Deletes("silver.a", "", day, "bronze.a", "", 7, 3, 4, ("id=1",), "the file lacks them").summary
        'silver.a: 3 of 4 keys (75 %) would be deleted: the file lacks them, such as id=1.'
        """
        percent = 100 * self.keys / max(self.of_keys, 1)
        such = f", such as {', '.join(self.samples)}" if self.samples else ""
        number = f"{self.keys:,} of {self.of_keys:,} keys ({percent:.0f} %)"
        return f"{self.table}: {number} would be deleted: {self.why}{such}."


def refusal(deletes: Deletes, max_percent: int) -> str:
    """What happened, and the ways out."""
    return (
        f"{deletes.summary}\nThat is more than max_deleted_percent ({max_percent}): nothing was written.\n"
        + ways_to_allow(deletes.table, deletes.interval_start, deletes.source_version)
    )


def ways_to_allow(table: str, interval_start: datetime, source_version: int) -> str:
    """What a person can do about deletes that were refused."""
    return (
        "If the source lost them, have it deliver them again, under another name.\n"
        f"If they are to go: `lakehouse run --table {table} --interval {interval_start:%Y-%m-%d} --allow-deletes`; in "
        f"Airflow, trigger the DAG delete_approval for {table} and source version {source_version}, then clear this "
        "task."
    )


def are_too_many(keys: int, of_keys: int, max_percent: int) -> bool:
    """Whether somebody is asked before so many of a table's keys are deleted.

    The percentage is rounded up to whole keys, so that a small table can lose one; the last key never goes unasked,
    unless the percentage is 100.

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

    def record_asked(self, deletes: Deletes, run_id: str) -> None:
        """Write down that a run stopped before these deletes."""
        self._events.append([_event(DeleteEvent.ASKED, deletes, "", "", run_id)])

    def record_allowed(self, deletes: Deletes, *, said_by: str, reason: str, run_id: str) -> None:
        """Write down that a person allows these deletes."""
        self._events.append([_event(DeleteEvent.ALLOWED, deletes, said_by, reason, run_id)])

    def asked(self, table: str) -> list[Deletes]:
        """The deletes of the table that a run asked for, and that nobody has allowed since, oldest first."""
        stand: dict[tuple[str, datetime, str, int], Deletes] = {}
        for row in self._events.events(table):
            deletes = _deletes(row)
            stand.pop(_identity(deletes), None)
            if row["event"] == DeleteEvent.ASKED:
                stand[_identity(deletes)] = deletes
        return list(stand.values())

    def question(self, table: str, table_id: str, source_id: str, source_version: int) -> Deletes | None:
        """The deletes that a run asked for last, when the source stood at that version; None once they are allowed."""
        wanted = (table_id, source_id, source_version)
        of_version = (one for one in self.asked(table) if (one.table_id, one.source_id, one.source_version) == wanted)
        return max(of_version, key=lambda one: one.interval_start, default=None)

    def allowed(self, table: str, table_id: str, source_id: str) -> list[Deletes]:
        """The deletes that a person has allowed, of this very table from this very source."""
        rows = self._events.events(table, table_id=table_id, source_id=source_id, event=DeleteEvent.ALLOWED)
        return [_deletes(row) for row in rows]

    def ever_allowed(self, table: str) -> list[Deletes]:
        """The deletes that a person has allowed of whatever table had this name."""
        return [_deletes(row) for row in self._events.events(table, event=DeleteEvent.ALLOWED)]


def are_allowed(
    allowed: Collection[Deletes], keys: int, since: int, upto: int, interval_start: datetime | None = None
) -> bool:
    """Whether a person has allowed what a batch deletes, and no more.

    Args:
        allowed: what persons have allowed, of this table from this source.
        keys: how many keys the batch deletes.
        since: the version of the source that last changed what the batch says of these keys.
        upto: the version up to which the batch reads the source.
        interval_start: start of the interval whose snapshot lacks the keys; None where any interval's run may delete
            them.

    >>> from datetime import UTC
    >>> day = datetime(2013, 1, 4, tzinfo=UTC)
    >>> allowed = [Deletes("silver.a", "", day, "bronze.a", "", 7, 25, 100)]
    >>> [are_allowed(allowed, keys, 6, 9, day) for keys in (25, 26)], are_allowed(allowed, 25, 8, 9, day)
    ([True, False], False)
    """
    return any(
        interval_start in (None, one.interval_start) and keys <= one.keys and since <= one.source_version <= upto
        for one in allowed
    )


def next_allowed_version(allowed: Collection[Deletes], after: int | None, upto: int) -> int:
    """Up to where a batch reads its source: the first version for which deletes were allowed, else the newest one.

    A person has allowed what a batch up to that version deletes, and nothing of what came later.
    """
    between = [one.source_version for one in allowed if (-1 if after is None else after) < one.source_version < upto]
    return min(between, default=upto)


def _event(event: DeleteEvent, deletes: Deletes, said_by: str, reason: str, run_id: str) -> dict[str, Any]:
    said = {"said_by": said_by, "reason": reason, "run_id": run_id}
    about = {**vars(deletes), "samples": list(deletes.samples)}
    return {"event": event.value, **about, **said}


def _deletes(row: dict[str, Any]) -> Deletes:
    fields = {name: row[name] for name in Deletes.__dataclass_fields__}
    return Deletes(**{**fields, "samples": tuple(row["samples"] or ())})


def _identity(deletes: Deletes) -> tuple[str, datetime, str, int]:
    return deletes.table_id, deletes.interval_start, deletes.source_id, deletes.source_version

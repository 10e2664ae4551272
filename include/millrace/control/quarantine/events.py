"""`ops.quarantine`: the append-only events of quarantined rows.

Spark writes the refused rows into the quarantine table. What people and replays do about a row is recorded here, by the
id of the row. The state of a row follows from its events (`millrace.control.quarantine.stored_rows`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.control.ledger.ops_table import OpsTable
from millrace.control.log.batch import Intent, Winner
from millrace.paths import LakehousePaths

QUARANTINE = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("table_id", pa.string()),
        ("row_id", pa.string()),
        ("replay", pa.string()),
        ("batch_seq", pa.int64()),
        ("received", pa.string()),
        ("fix", pa.string()),
        ("reasons", pa.list_(pa.string())),
        ("said_by", pa.string()),
        ("why", pa.string()),
        ("run_id", pa.string()),
    ]
)


class RowEvent(StrEnum):
    """What happened to a quarantined row.

    A planned row is pinned to a replay. Its state changes only after the batch of the replay is committed and closed:
    then it is replayed, or refused again. It is undone when a restore removes the rows of that replay from the table.
    """

    FIXED = "fixed"
    DISCARDED = "discarded"
    REOPENED = "reopened"
    PLANNED = "planned"
    REPLAYED = "replayed"
    REFUSED = "refused"
    UNDONE = "undone"


@dataclass(frozen=True)
class ReceivedRow:
    """A row as the writer of its table receives it, to be checked once more.

    Attributes:
        id: the id of the quarantined row.
        received: the row as JSON.
        fix: how it was fixed; empty for a row as its source delivered it.
    """

    id: str
    received: str
    fix: str = ""


@dataclass(frozen=True)
class Decision:
    """Who decided about rows (a person or a job), why, and in which run."""

    by: str
    why: str
    run_id: str


class QuarantineEvents:
    """Reads and writes `ops.quarantine` of one lakehouse; every event is about one row of one table by its id."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "quarantine", QUARANTINE)

    def record(self, event: RowEvent, table: str, table_id: str, ids: Iterable[str], decision: Decision) -> None:
        """Record a decision about rows."""
        self._append(event, table, table_id, decision, [{"row_id": row_id} for row_id in ids])

    def record_fixes(self, table: str, table_id: str, rows: Iterable[ReceivedRow], decision: Decision) -> None:
        """Record fixed rows."""
        self._append(RowEvent.FIXED, table, table_id, decision, map(_columns, rows))

    def pin(self, table: str, table_id: str, replay: str, rows: Iterable[ReceivedRow], decision: Decision) -> None:
        """Pin the rows of a replay, exactly as it will read them."""
        planned = [{**_columns(row), "replay": replay} for row in rows]
        self._append(RowEvent.PLANNED, table, table_id, decision, planned)

    def record_outcome(self, winner: Winner, refused: Iterable[tuple[str, Sequence[str]]], decision: Decision) -> None:
        """Record the outcome of a committed replay for each of its rows.

        `refused` has (row id, reasons) of the rows that were refused again; the decision says who replayed, and why.
        """
        intent, reasons_of = winner.intent, dict(refused)
        pinned = self.pinned_rows(intent.table, intent.sources.replay)
        common = {"replay": intent.sources.replay, "batch_seq": winner.batch_seq}
        for event, is_refused in ((RowEvent.REFUSED, True), (RowEvent.REPLAYED, False)):
            rows = [row for row in pinned if (row.id in reasons_of) is is_refused]
            outcomes = [{"row_id": row.id, "fix": row.fix, "reasons": reasons_of.get(row.id), **common} for row in rows]
            self._append(event, intent.table, intent.table_id, decision, outcomes)

    def record_undone(self, restore: Winner, replays: Collection[str], decision: Decision) -> None:
        """Record, once, that a restore has removed the rows of some replays from the table."""
        undone = self._undone(restore.intent, lambda _, replay: replay in replays, decision)
        self._events.append_once(undone, f"{restore.intent.token}/undone")

    def record_deleted(self, winner: Winner, ids: Collection[str], decision: Decision) -> None:
        """Record, once, that a source has deleted some rows, which a batch has followed: what replays added is gone."""
        intent = winner.intent
        replayed = self._undone(intent, lambda row_id, _: row_id in ids, decision)
        undone = [{**row, "batch_seq": winner.batch_seq} for row in replayed]
        common = _common(RowEvent.DISCARDED, intent.table, intent.table_id, decision)
        discarded = [{**common, "row_id": row_id} for row_id in sorted(ids)]
        self._events.append_once([*undone, *discarded], f"{intent.token}/deleted")

    def _undone(
        self, intent: Intent, is_undone: Callable[[str, str], bool], decision: Decision
    ) -> list[dict[str, Any]]:
        """Return an event for each row of the table, and replay that has loaded it, for which `is_undone` is true."""
        replayed = self._events.find(intent.table, table_id=[intent.table_id], event=[RowEvent.REPLAYED])
        pairs = sorted({(row["row_id"], row["replay"]) for row in replayed if is_undone(row["row_id"], row["replay"])})
        common = _common(RowEvent.UNDONE, intent.table, intent.table_id, decision)
        return [{**common, "row_id": row_id, "replay": replay} for row_id, replay in pairs]

    def pinned_rows(self, table: str, replay: str) -> list[ReceivedRow]:
        """Return the rows of a replay."""
        rows = self._events.events(table, ("row_id", "received", "fix"), replay=replay, event=RowEvent.PLANNED)
        return [ReceivedRow(row["row_id"], row["received"], row["fix"] or "") for row in rows]

    def decision_of(self, table: str, replay: str) -> Decision:
        """Return who asked for a replay, and why."""
        rows = self._events.events(table, ("said_by", "why", "run_id"), replay=replay, event=RowEvent.PLANNED)
        return Decision(rows[0]["said_by"], rows[0]["why"], rows[0]["run_id"])

    def replayed_rows(self, table: str, table_id: str, current: str, batch_seq: int | None = None) -> list[ReceivedRow]:
        """Return the rows that replays have loaded, as they loaded them, without the replay `current`.

        A batch calls this, and no later one of its stream begins before it is closed: so these are the earlier replays.
        Those that the batch `batch_seq` itself has undone are among them: it may be counted again.
        """
        of_replay = ("row_id", "replay", "batch_seq")
        replayed, undone = (
            self._events.events(table, of_replay, table_id=table_id, event=event)
            for event in (RowEvent.REPLAYED, RowEvent.UNDONE)
        )
        by_others = (row for row in undone if row["batch_seq"] is None or row["batch_seq"] != batch_seq)
        gone = {(row["row_id"], row["replay"]) for row in by_others}
        keys = {(row["row_id"], row["replay"]) for row in replayed if row["replay"] != current} - gone
        if not keys:
            return []
        columns = ("row_id", "replay", "received", "fix")
        planned = self._events.events(table, columns, table_id=table_id, event=RowEvent.PLANNED)
        rows = [row for row in planned if (row["row_id"], row["replay"]) in keys]
        return [ReceivedRow(row["row_id"], row["received"], row["fix"] or "") for row in rows]

    def events_of(self, table: str, table_id: str) -> list[dict[str, Any]]:
        """Return all events about rows of the table, oldest first."""
        return self._events.events(table, table_id=table_id)

    def events_of_row(self, table: str, table_id: str, row_id: str) -> list[dict[str, Any]]:
        """Return all events about one row of the table, oldest first."""
        return self._events.find(table, table_id=[table_id], row_id=[row_id])

    def state_changes(self, table: str, table_id: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        """Return all events that change the state of a row of the table, oldest first: all but the planned replays."""
        changes = [event for event in RowEvent if event is not RowEvent.PLANNED]
        return self._events.find(table, columns, table_id=[table_id], event=changes)

    def copy_decisions(self, table: str, earlier: str, table_id: str, new_ids: Mapping[str, str], key: str) -> None:
        """Copy the decisions of people about rows of the table with the id `earlier` to its rebuild, once per key.

        If the rebuild refuses a row again, the row stays fixed or discarded. It has the same id, or one of `new_ids`.
        """
        decided = (RowEvent.FIXED, RowEvent.DISCARDED, RowEvent.REOPENED)
        rows = [row for row in self.events_of(table, earlier) if row["event"] in decided]
        own = [{**row, "table_id": table_id, "row_id": new_ids.get(row["row_id"], row["row_id"])} for row in rows]
        self._events.append_once(own, f"{key}/{table}/decided")

    def copy_to_new_ids(self, table: str, table_id: str, new_ids: Mapping[str, str], key: str) -> None:
        """Copy the events of rows that have other ids now (id -> new id), once per key; planned replays stay.

        A replayed row stays loaded as it was planned, and need not be replayed again.
        """
        rows = [row for row in self.events_of(table, table_id) if row["event"] != RowEvent.PLANNED]
        own = [{**row, "row_id": new_ids[row["row_id"]]} for row in rows if row["row_id"] in new_ids]
        self._events.append_once(own, f"{key}/{table}/ids")

    def copy_staged(self, staged: QuarantineEvents, table: str, table_id: str, key: str) -> None:
        """Copy the events of rows that a staged rebuild refused, once per key."""
        self._events.append_once(staged.events_of(table, table_id), f"{key}/{table}")

    def _append(
        self, event: RowEvent, table: str, table_id: str, decision: Decision, rows: Iterable[dict[str, Any]]
    ) -> None:
        common = _common(event, table, table_id, decision)
        self._events.append([{**common, **row} for row in rows])


def _common(event: RowEvent, table: str, table_id: str, decision: Decision) -> dict[str, Any]:
    of_table = {"event": event.value, "table": table, "table_id": table_id}
    return {**of_table, "said_by": decision.by, "why": decision.why, "run_id": decision.run_id}


def _columns(row: ReceivedRow) -> dict[str, Any]:
    return {"row_id": row.id, "received": row.received, "fix": row.fix}

"""`ops.quarantine`: what became of quarantined rows since they were refused, append-only.

The quarantine table says which rows are refused, and is written by Spark; what people and replays did about each of
them is said here, by the row's id. Where a row stands is worked out from its events
(`include.control.quarantine.row_states`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from include.control.ledger.ops_table import OpsTable
from include.control.log.batch import Winner
from include.paths import LakehousePaths

_TIME = pa.timestamp("us", tz="UTC")

QUARANTINE = pa.schema(
    [
        ("recorded_at", _TIME),
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

    A planned one is pinned to a replay, and says nothing until the replay's batch is committed and closed: then it was
    replayed, or refused again.
    """

    FIXED = "fixed"
    DISCARDED = "discarded"
    REOPENED = "reopened"
    PLANNED = "planned"
    REPLAYED = "replayed"
    REFUSED = "refused"


@dataclass(frozen=True)
class ReceivedRow:
    """A row as its table's writer receives it, to be judged once more.

    Attributes:
        id: of the quarantined row.
        received: the row as JSON.
        fix: what was mended in it; empty for a row that is as its source delivered it.
    """

    id: str
    received: str
    fix: str = ""


@dataclass(frozen=True)
class Said:
    """Who did something to a row, and why.

    Attributes:
        by: the person, or the job.
        why: the reason that was given.
        run_id: the run in which it was said.
    """

    by: str
    why: str
    run_id: str


class QuarantineEvents:
    """Reads and writes `ops.quarantine` of one lakehouse; every event is about one row of one table by its id."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable(paths.ops("quarantine"), QUARANTINE)

    def record(self, event: RowEvent, table: str, table_id: str, ids: Iterable[str], said: Said) -> None:
        """Write down what a person decided about rows."""
        self._append(event, table, table_id, [{"row_id": one, **_of(said)} for one in ids])

    def record_fixed(self, table: str, table_id: str, rows: Iterable[ReceivedRow], said: Said) -> None:
        """Write down rows as somebody has mended them."""
        self._append(RowEvent.FIXED, table, table_id, [{**_row(row), **_of(said)} for row in rows])

    def pin(self, table: str, table_id: str, replay: str, rows: Iterable[ReceivedRow], said: Said) -> None:
        """Pin the rows that a replay is about to try, exactly as it will read them."""
        planned = [{**_row(row), "replay": replay, **_of(said)} for row in rows]
        self._append(RowEvent.PLANNED, table, table_id, planned)

    def record_outcome(self, winner: Winner, refused: Iterable[tuple[str, Sequence[str]]], said: Said) -> None:
        """Write down what became of each row of a committed replay.

        Args:
            winner: the batch of the replay.
            refused: (row id, reasons) of the rows that are refused again.
            said: who replayed.
        """
        intent, reasons_of = winner.intent, dict(refused)
        pinned = self.pinned(intent.table, intent.sources.replay)
        common = {"replay": intent.sources.replay, "batch_seq": winner.batch_seq, **_of(said)}
        for event, is_refused in ((RowEvent.REFUSED, True), (RowEvent.REPLAYED, False)):
            rows = [row for row in pinned if (row.id in reasons_of) is is_refused]
            told = [{"row_id": row.id, "fix": row.fix, "reasons": reasons_of.get(row.id), **common} for row in rows]
            self._append(event, intent.table, intent.table_id, told)

    def pinned(self, table: str, replay: str) -> list[ReceivedRow]:
        """The rows of a replay."""
        rows = self._events.events(table, ("row_id", "received", "fix"), replay=replay, event=RowEvent.PLANNED)
        return [ReceivedRow(row["row_id"], row["received"], row["fix"] or "") for row in rows]

    def pinned_by(self, table: str, replay: str) -> Said:
        """Who asked for a replay."""
        rows = self._events.events(table, ("said_by", "why", "run_id"), replay=replay, event=RowEvent.PLANNED)
        return Said(rows[0]["said_by"], rows[0]["why"], rows[0]["run_id"])

    def replayed_before(self, table: str, table_id: str, batch_seq: int) -> list[ReceivedRow]:
        """The rows that earlier batches of the table took over from the quarantine, as they did."""
        wanted = ("row_id", "replay", "batch_seq")
        through = self._events.events(table, wanted, table_id=table_id, event=RowEvent.REPLAYED)
        taken = {(row["row_id"], row["replay"]) for row in through if row["batch_seq"] < batch_seq}
        if not taken:
            return []
        columns = ("row_id", "replay", "received", "fix")
        planned = self._events.events(table, columns, table_id=table_id, event=RowEvent.PLANNED)
        mine = [row for row in planned if (row["row_id"], row["replay"]) in taken]
        return [ReceivedRow(row["row_id"], row["received"], row["fix"] or "") for row in mine]

    def of(self, table: str, table_id: str, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
        """All events about rows of the table, oldest first."""
        return self._events.events(table, columns, table_id=table_id)

    def decisions(self, table: str, table_id: str, columns: Sequence[str]) -> list[dict[str, Any]]:
        """All events that say where rows of the table stand, oldest first: those that are pinned say nothing yet."""
        decided = [event for event in RowEvent if event is not RowEvent.PLANNED]
        return self._events.find(table, columns, table_id=[table_id], event=decided)

    def carry_over(self, table: str, earlier: str, table_id: str, key: str) -> None:
        """Write down for a table that is built anew what people decided about rows of the earlier one, once for a key.

        A row that it refuses again, under the same id, stands as they left it: mended, or given up.
        """
        decided = (RowEvent.FIXED, RowEvent.DISCARDED, RowEvent.REOPENED)
        rows = [row for row in self.of(table, earlier) if row["event"] in decided]
        self._events.append_once([{**row, "table_id": table_id} for row in rows], f"{key}/{table}/decided")

    def take_over(self, staged: QuarantineEvents, table: str, table_id: str, key: str) -> None:
        """Write down what became of rows that a rebuild refused, once for a key."""
        self._events.append_once(staged.of(table, table_id), f"{key}/{table}")

    def _append(self, event: RowEvent, table: str, table_id: str, rows: Sequence[dict[str, Any]]) -> None:
        common = {"recorded_at": datetime.now(UTC), "event": event.value, "table": table, "table_id": table_id}
        self._events.append([{**common, **row} for row in rows])


def _row(row: ReceivedRow) -> dict[str, Any]:
    return {"row_id": row.id, "received": row.received, "fix": row.fix}


def _of(said: Said) -> dict[str, Any]:
    return {"said_by": said.by, "why": said.why, "run_id": said.run_id}

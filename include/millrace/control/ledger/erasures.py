"""`ops.erasures`: the erasures of subjects, who decided them and why, and their certificates; append-only.

No event has a key of a subject, nor a digest of keys alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa

from millrace.control.ledger.ops_table import OpsTable
from millrace.paths import LakehousePaths

ERASURES = pa.schema(
    [
        ("recorded_at", pa.timestamp("us", tz="UTC")),
        ("event", pa.string()),
        ("table", pa.string()),
        ("number", pa.int64()),
        ("certificate", pa.string()),
        ("erasure", pa.string()),
        ("request", pa.string()),
        ("kind", pa.string()),
        ("subjects", pa.int64()),
        ("digest", pa.string()),
        ("tables", pa.string()),
        ("at_once", pa.bool_()),
        ("table_id", pa.string()),
        ("version", pa.int64()),
        ("rows", pa.int64()),
        ("due", pa.timestamp("us", tz="UTC")),
        ("run_id", pa.string()),
        ("said_by", pa.string()),
        ("why", pa.string()),
    ]
)

WHOLE = "lakehouse"
"""What events are about that concern no single table."""


class ErasureEvent(StrEnum):
    """An event of an erasure, or a certificate."""

    CERTIFIED = "certified"
    DECIDED = "decided"
    TABLE = "erased in a table"
    DONE = "erased"


@dataclass(frozen=True)
class DecidedErasure:
    """An erasure that a person has decided.

    Attributes:
        id: the digest of what the plan showed.
        request: the name of the request elsewhere, such as `DSR-2026-17`.
        kind: the kind of its subjects.
        subjects: how many there are.
        digest: a digest of their keys, which nobody can compute without the salt of the lakehouse.
        tables: the tables whose rows it deletes, sources first.
        said_by: the person.
        why: the reason, in the words of the person.
        at_once: whether older versions are deleted at once, and not when VACUUM may delete them.
        decided_at: when; None if it is decided now.
    """

    id: str
    request: str
    kind: str
    subjects: int
    digest: str
    tables: tuple[str, ...]
    said_by: str
    why: str
    at_once: bool = False
    decided_at: datetime | None = None


@dataclass(frozen=True)
class ErasedTable:
    """A table whose newest version has nothing of the subjects of an erasure any more.

    Attributes:
        erasure: the id of the erasure.
        request: the name of its request.
        table: the table.
        table_id: its id.
        version: the first version without these rows; all earlier ones may have them.
        rows: the number of rows that were deleted by key, without those of its quarantine and tombstones, and without
            those that a run before had taken away, since its source had lost them.
        due: when everything may be deleted that only earlier versions need: data files, and commits of the log.
        recorded_at: when it was done; None if it is done now.
    """

    erasure: str
    request: str
    table: str
    table_id: str
    version: int
    rows: int
    due: datetime
    recorded_at: datetime | None = None


class Erasures:
    """Reads and writes the erasures in `ops.erasures` of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._events = OpsTable.of(paths, "erasures", ERASURES)

    def decide(self, erasure: DecidedErasure, run_id: str) -> None:
        """Record that a person has decided an erasure, once."""
        row = {
            "event": ErasureEvent.DECIDED.value,
            "table": WHOLE,
            "erasure": erasure.id,
            "request": erasure.request,
            "kind": erasure.kind,
            "subjects": erasure.subjects,
            "digest": erasure.digest,
            "tables": ",".join(erasure.tables),
            "at_once": erasure.at_once,
            "run_id": run_id,
            "said_by": erasure.said_by,
            "why": erasure.why,
        }
        self._events.append_once([row], f"{ErasureEvent.DECIDED}/{erasure.id}")

    def record_table(self, erased: ErasedTable, run_id: str) -> None:
        """Record that the newest version of a table has nothing of the subjects any more, once."""
        row = {
            "event": ErasureEvent.TABLE.value,
            "table": erased.table,
            "erasure": erased.erasure,
            "request": erased.request,
            "table_id": erased.table_id,
            "version": erased.version,
            "rows": erased.rows,
            "due": erased.due,
            "run_id": run_id,
        }
        self._events.append_once([row], f"{ErasureEvent.TABLE}/{erased.erasure}/{erased.table}")

    def finish(self, erasure: DecidedErasure, run_id: str) -> None:
        """Record that all steps of an erasure were done, once."""
        row = {"event": ErasureEvent.DONE.value, "table": WHOLE, "erasure": erasure.id, "run_id": run_id}
        self._events.append_once([row], f"{ErasureEvent.DONE}/{erasure.id}")

    def all(self) -> list[DecidedErasure]:
        """Return all erasures that were decided, the first one first."""
        return [
            DecidedErasure(
                id=row["erasure"],
                request=row["request"],
                kind=row["kind"],
                subjects=row["subjects"],
                digest=row["digest"],
                tables=tuple(filter(None, row["tables"].split(","))),
                said_by=row["said_by"],
                why=row["why"],
                at_once=bool(row["at_once"]),
                decided_at=row["recorded_at"],
            )
            for row in self._of(WHOLE, ErasureEvent.DECIDED)
        ]

    def decided(self, erasure: str) -> DecidedErasure | None:
        """Return a decided erasure by its id; None if nobody has decided it."""
        return next((each for each in self.all() if each.id == erasure), None)

    def of_run(self, run_id: str) -> DecidedErasure | None:
        """Return the erasure that a run has begun; None if it has begun none."""
        rows = self._events.events(WHOLE, ("erasure",), event=ErasureEvent.DECIDED.value, run_id=run_id)
        return self.decided(rows[-1]["erasure"]) if rows else None

    def is_done(self, erasure: str) -> bool:
        """Whether all steps of an erasure were done."""
        return any(row["erasure"] == erasure for row in self._of(WHOLE, ErasureEvent.DONE))

    def in_table(self, table: str, table_id: str = "") -> list[ErasedTable]:
        """Return the erasures in a table, the first one first; with an id only those in the table with that id."""
        names = ErasedTable.__dataclass_fields__
        found = [ErasedTable(**{name: row[name] for name in names}) for row in self._of(table, ErasureEvent.TABLE)]
        return [erased for erased in found if table_id in ("", erased.table_id)]

    def _of(self, table: str, event: ErasureEvent) -> Iterator[dict[str, Any]]:
        yield from self._events.events(table, event=event.value)

"""Models of silver tables of orders: plain dicts compute the rows that a table must have from the rows of bronze."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable

from tests.support.documents.specs import Document, silver_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, tombstones_path
from tests.support.silver.orders import OrderRow
from tests.support.silver.timelines import Period, Timeline, fill_nulls, overlapping, periods, timelines

Bronze = Mapping[tuple[int, str], Sequence[OrderRow | str]]
"""(day, name) of each landing file that bronze has loaded -> its lines; a text is a broken line."""

COLUMNS = {
    "order_id": {"type": "string", "nullable": False},
    "amount": {"type": "int"},
    "note": {"type": "string"},
    "event_at": {"type": "timestamp"},
    "event_seq": {"type": "int"},
}
DELETES = {"apply_as_deletes": "op = 'delete'"}


@dataclass
class SilverModel(ABC):
    """The expected content of a silver table that is merged from events, of its quarantine and its tombstones.

    Attributes:
        table: the name of the table.
        options: the keys of its spec beyond keys, columns and the rule that no amount is negative.
        refused: its quarantined rows as (key, amount, note).
        rows: key -> expected row or periods.
        known_keys: all keys that its source has delivered.
        timelines_by_key: the timeline of each key.
        deletes: key, sequence and hash of each delete.
    """

    table: str
    options: Document
    refused: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    rows: dict[str, Any] = field(default_factory=dict)
    known_keys: set[str] = field(default_factory=set)
    timelines_by_key: dict[str, Timeline] = field(default_factory=dict)
    deletes: set[tuple[str | None, tuple[Any, ...], int]] = field(default_factory=set)

    def document(self) -> Document:
        """Return the table's spec."""
        return silver_document(self.table, columns=COLUMNS, expectations=[AT_LEAST_0], **self.options)

    @property
    def fills(self) -> bool:
        return bool(self.options.get("ignore_null_updates"))

    def sequence(self, row: OrderRow) -> tuple[Any, ...]:
        """Return the sequence of an event by the columns of the spec."""
        values = {"event_at": row.hour, "event_seq": row.seq}
        return tuple(values[name] for name in self.options["sequence_by"])

    def is_truncate(self, row: OrderRow) -> bool:
        return row.op == "truncate" and "apply_as_truncates" in self.options

    def refuses(self, row: OrderRow) -> bool:
        if None in self.sequence(row):
            return True
        is_negative = row.op != "delete" and row.amount is not None and row.amount < 0
        return not self.is_truncate(row) and (row.key is None or is_negative)

    def merge(self, bronze: Bronze) -> None:
        """Compute rows, deletes and quarantine from the present rows of bronze."""
        delivered = list(rows_in(bronze))
        events = [
            (row.key, self.sequence(row), row.hash, None if row.op == "delete" else (row.amount, row.note))
            for row in delivered
            if not self.refuses(row) and row.key is not None and not self.is_truncate(row)
        ]
        self.deletes = {(key, sequence, source_hash) for key, sequence, source_hash, state in events if state is None}
        by_key = timelines(events)
        self.timelines_by_key = {key: fill_nulls(line) for key, line in by_key.items()} if self.fills else by_key
        self.known_keys |= {row.key for row in delivered if row.key is not None}
        self.refused = Counter(
            (None if self.is_truncate(row) else row.key, row.amount, row.note) for row in delivered if self.refuses(row)
        )
        self.rows = self.expected_rows(bronze)

    @abstractmethod
    def expected_rows(self, bronze: Bronze) -> dict[str, Any]:
        """Return key -> expected row, from the rows of bronze."""

    @abstractmethod
    def stored_rows(self, shop: Lakehouse) -> dict[str, Any]:
        """Return key -> stored row."""

    def check(self, shop: Lakehouse) -> None:
        """Compare the table, its quarantine and its tombstones with the model."""
        assert differences(self.stored_rows(shop), self.rows) == {}
        records = (json.loads(row["record"]) for row in shop.quarantine(self.table))
        quarantined = Counter(tuple(record.get(name) for name in ("order_id", "amount", "note")) for record in records)
        assert quarantined == self.refused, "each refused row is in quarantine once"
        self.check_tombstones(tombstones(shop, self.table))

    def check_tombstones(self, stored: Mapping[str | None, tuple[tuple[Any, ...], int]]) -> None:
        """Check that each deleted key has the tombstone of its last delete; other keys may have an older one."""
        deleted = {key: timeline[-1][0] for key, timeline in self.timelines_by_key.items() if timeline[-1][1] is None}
        sequences = {key: sequence for key, (sequence, _) in stored.items()}
        assert {key: sequences.get(key) for key in deleted} == deleted
        of_keys = {(key, *state) for key, state in stored.items() if key is not None}
        assert of_keys <= self.deletes, "bronze has the delete of each tombstone"


@dataclass
class LastStates(SilverModel):
    """The last state of each key (SCD type 1): (sequence, state)."""

    truncated: tuple[Any, ...] = ()

    def expected_rows(self, bronze: Bronze) -> dict[str, Any]:
        truncates = [self.sequence(row) for row in rows_in(bronze) if self.is_truncate(row) and not self.refuses(row)]
        # A truncate stays in force when its file is replaced.
        self.truncated = max([*truncates, self.truncated])
        last = {key: timeline[-1] for key, timeline in self.timelines_by_key.items()}
        return {key: row for key, row in last.items() if row[1] is not None and row[0] > self.truncated}

    def stored_rows(self, shop: Lakehouse) -> dict[str, Any]:
        rows = shop.rows(self.table, "order_id", "event_at", "event_seq", "amount", "note")
        return by_key((key, ((at.hour, seq), (amount, note))) for key, at, seq, amount, note in rows)

    def check_tombstones(self, stored: Mapping[str | None, tuple[tuple[Any, ...], int]]) -> None:
        super().check_tombstones(stored)
        assert stored.get(None, ((), 0))[0] == self.truncated, "the last truncate has a tombstone without a key"


@dataclass
class History(SilverModel):
    """Every state of each key (SCD type 2), as periods."""

    def expected_rows(self, bronze: Bronze) -> dict[str, Any]:
        by_key = {key: periods(timeline) for key, timeline in self.timelines_by_key.items()}
        return {key: of_key for key, of_key in by_key.items() if of_key}

    def stored_rows(self, shop: Lakehouse) -> dict[str, Any]:
        by_key: dict[str, list[Period]] = {}
        columns = ("order_id", "__START_AT", "__END_AT", "amount", "note")
        for key, start, end, amount, note in shop.rows(self.table, *columns):
            by_key.setdefault(key, []).append(Period((start.hour,), end and (end.hour,), amount, note))
        for key, of_key in by_key.items():
            of_key.sort(key=lambda period: period.start)
            assert not overlapping(of_key), f"the periods of {key} overlap: {of_key}"
        return by_key


def rows_in(bronze: Bronze) -> Iterator[OrderRow]:
    """Return every row of bronze."""
    return (row for rows in bronze.values() for row in rows if isinstance(row, OrderRow))


def by_key(rows: Iterator[tuple[Hashable, Any]]) -> dict[Any, Any]:
    """Return key -> row, and check that no key has two rows."""
    listed = list(rows)
    assert len(dict(listed)) == len(listed), "a key has one row"
    return dict(listed)


def tombstones(shop: Lakehouse, table: str) -> dict[str | None, tuple[tuple[Any, ...], int]]:
    """Return key -> (sequence, hash) of the tombstones of a table."""
    path = str(tombstones_path(shop, table))
    if not DeltaTable.is_deltatable(path):
        return {}
    rows = DeltaTable(path).to_pyarrow_table(columns=["order_id", "_sequence", "_source_hash"]).to_pylist()
    return by_key((row["order_id"], (_in_hours(row["_sequence"]), row["_source_hash"])) for row in rows)


def differences(stored: Mapping[Any, Any], expected: Mapping[Any, Any]) -> dict[Any, tuple[Any, Any]]:
    """Return key -> (stored, expected) for each key in which they differ."""
    keys = sorted(stored.keys() | expected.keys(), key=repr)
    pairs = {key: (stored.get(key), expected.get(key)) for key in keys}
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def _in_hours(sequence: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(value.hour if name == "event_at" else value for name, value in sequence.items())

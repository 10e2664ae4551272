"""What silver tables of orders must hold, worked out by dicts alone from what bronze holds when they are merged."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from deltalake import DeltaTable

from tests.support.documents.specs import Document, silver_document
from tests.support.lakehouse import Lakehouse, tombstones_path
from tests.support.silver.orders import Told
from tests.support.silver.timelines import Period, State, Timeline, filled, overlapping, periods, timelines

Bronze = Mapping[tuple[int, str], Sequence[Told | str]]
"""(day, name) of each landing file that bronze has loaded -> its lines; a text is a broken one."""

RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
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
    """A silver table and its quarantine as they must be.

    Attributes:
        table: its name.
        stated: what its spec states beside keys, columns and the rule that no amount is negative.
        refused: its quarantined rows as (key, amount, note).
        rows: what it must hold, by key.
        seen: the keys that it was ever told of.
    """

    table: str
    stated: Document
    refused: Counter[tuple[Any, ...]] = field(default_factory=Counter)
    rows: dict[str, Any] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    def document(self) -> Document:
        """The table's spec."""
        return silver_document(self.table, columns=COLUMNS, expectations=[RULE], **self.stated)

    def merge(self, bronze: Bronze) -> None:
        """Take in what bronze holds now."""
        self.seen |= {row.key for _, row in told(bronze) if row.key is not None}
        self.refused = Counter((self.key_of(row), row.amount, row.note) for _, row in told(bronze) if self.refuses(row))
        self.rows = self.work_out(bronze)

    @property
    def is_snapshot(self) -> bool:
        return "snapshot" in self.stated

    def adopt(self, shop: Lakehouse) -> None:
        """Take what the table holds for right, where a part of what bronze holds does not count yet."""
        self.rows = self.found(shop) if DeltaTable.is_deltatable(str(shop.paths.table(self.table))) else {}

    def key_of(self, row: Told) -> str | None:
        return row.key

    def refuses(self, row: Told) -> bool:
        return row.key is None or (row.amount is not None and row.amount < 0)

    @abstractmethod
    def work_out(self, bronze: Bronze) -> dict[str, Any]:
        """The rows that bronze calls for, by key."""

    def check(self, shop: Lakehouse) -> None:
        """Hold the table, its quarantine and its tombstones against what they must be."""
        assert differences(self.found(shop), self.rows) == {}
        records = (json.loads(row["record"]) for row in shop.quarantine(self.table))
        found = Counter(tuple(record.get(name) for name in ("order_id", "amount", "note")) for record in records)
        assert found == self.refused, "each refused row is in quarantine once"
        self.check_tombstones(tombstones(shop, self.table))

    @abstractmethod
    def found(self, shop: Lakehouse) -> dict[str, Any]:
        """The rows that the table holds, likewise."""

    def check_tombstones(self, buried: Mapping[str | None, tuple[tuple[Any, ...], int]]) -> None:
        assert buried == {}, "a snapshot says what there is: nothing has to be remembered"


@dataclass
class EventTable(SilverModel):
    """A table that is merged from events; `told` is the timeline of each key."""

    told: dict[str, Timeline] = field(default_factory=dict)
    deletes: set[tuple[str | None, tuple[Any, ...], int]] = field(default_factory=set)

    @property
    def fills(self) -> bool:
        return bool(self.stated.get("ignore_null_updates"))

    def sequence(self, row: Told) -> tuple[Any, ...]:
        """The sequence of an event, as the spec states it."""
        values = {"event_at": row.hour, "event_seq": row.seq}
        return tuple(values[name] for name in self.stated["sequence_by"])

    def is_truncate(self, row: Told) -> bool:
        return row.op == "truncate" and "apply_as_truncates" in self.stated

    def key_of(self, row: Told) -> str | None:
        return None if self.is_truncate(row) else row.key

    def refuses(self, row: Told) -> bool:
        if None in self.sequence(row):
            return True
        return not self.is_truncate(row) and (row.key is None or (row.op != "delete" and super().refuses(row)))

    def merge(self, bronze: Bronze) -> None:
        accepted = [row for _, row in told(bronze) if not self.refuses(row)]
        said = [
            (row.key, self.sequence(row), row.hash, None if row.op == "delete" else (row.amount, row.note))
            for row in accepted
            if row.key is not None and not self.is_truncate(row)
        ]
        self.deletes = {(key, sequence, source_hash) for key, sequence, source_hash, state in said if state is None}
        found = timelines(said)
        self.told = {key: filled(timeline) for key, timeline in found.items()} if self.fills else found
        super().merge(bronze)

    def check_tombstones(self, buried: Mapping[str | None, tuple[tuple[Any, ...], int]]) -> None:
        """Every deleted key is known by its last delete; of others an older delete of theirs may be known."""
        deleted = {key: timeline[-1][0] for key, timeline in self.told.items() if timeline[-1][1] is None}
        known = {key: sequence for key, (sequence, _) in buried.items()}
        assert {key: known.get(key) for key in deleted} == deleted
        of_keys = {(key, *state) for key, state in buried.items() if key is not None}
        assert of_keys <= self.deletes, "a tombstone is of a delete that bronze holds"


@dataclass
class LastStates(EventTable):
    """The last state of each key (SCD type 1): (sequence, state)."""

    truncated: tuple[Any, ...] = ()

    def work_out(self, bronze: Bronze) -> dict[str, Any]:
        said = [self.sequence(row) for _, row in told(bronze) if self.is_truncate(row) and not self.refuses(row)]
        # One whose file was replaced is not taken back.
        self.truncated = max([*said, self.truncated])
        last = {key: timeline[-1] for key, timeline in self.told.items()}
        return {key: known for key, known in last.items() if known[1] is not None and known[0] > self.truncated}

    def found(self, shop: Lakehouse) -> dict[str, Any]:
        rows = shop.rows(self.table, "order_id", "event_at", "event_seq", "amount", "note")
        return by_key((key, ((at.hour, seq), (amount, note))) for key, at, seq, amount, note in rows)

    def check_tombstones(self, buried: Mapping[str | None, tuple[tuple[Any, ...], int]]) -> None:
        super().check_tombstones(buried)
        assert buried.get(None, ((), 0))[0] == self.truncated, "the last truncate is known, under no key"


@dataclass
class History(EventTable):
    """Every state of each key (SCD type 2), as periods."""

    def work_out(self, bronze: Bronze) -> dict[str, Any]:
        found = {key: periods(timeline) for key, timeline in self.told.items()}
        return {key: of_key for key, of_key in found.items() if of_key}

    def found(self, shop: Lakehouse) -> dict[str, Any]:
        return periods_of(shop, self.table, "hour")


@dataclass
class SnapshotStates(SilverModel):
    """The rows of the newest full snapshot; a key whose row was refused keeps the row that it had.

    So do all keys where the key of a refused line cannot be read.
    """

    def work_out(self, bronze: Bronze) -> dict[str, Any]:
        newest = max(day for day, _ in bronze)
        delivered = [row for day, row in told(bronze) if day == newest and row.key is not None]
        kept = {row.key: self.rows[row.key] for row in delivered if row.key in self.rows}
        return {**(self.rows if newest in unreadable(bronze) else kept), **states_of(delivered, self)}

    def found(self, shop: Lakehouse) -> dict[str, Any]:
        rows = shop.rows(self.table, "order_id", "amount", "note")
        return by_key((key, (amount, note)) for key, amount, note in rows)


@dataclass
class SnapshotHistory(SilverModel):
    """The periods between full snapshots; a row that was refused ends none, and ends no other's if it has no key."""

    def work_out(self, bronze: Bronze) -> dict[str, Any]:
        by_day = {
            day: [row for other, row in told(bronze) if other == day] for day in sorted({day for day, _ in bronze})
        }
        keys = {row.key for rows in by_day.values() for row in rows if row.key is not None}
        silent = unreadable(bronze)
        found = {key: periods(list(self._timeline(key, by_day, silent))) for key in keys}
        return {key: of_key for key, of_key in found.items() if of_key}

    def _timeline(
        self, key: str, by_day: Mapping[int, Sequence[Told]], silent: set[int]
    ) -> Iterator[tuple[Any, State | None]]:
        for day, rows in by_day.items():
            if key in (states := states_of(rows, self)):
                yield (day,), states[key]
            elif key not in {row.key for row in rows} and day not in silent:
                yield (day,), None

    def found(self, shop: Lakehouse) -> dict[str, Any]:
        return periods_of(shop, self.table, "day")


def told(bronze: Bronze) -> Iterator[tuple[int, Told]]:
    """(day, row) of every row of bronze."""
    return ((day, row) for (day, _), rows in bronze.items() for row in rows if isinstance(row, Told))


def unreadable(bronze: Bronze) -> set[int]:
    """The days of which a line has no key that can be read."""
    lines = ((day, line) for (day, _), of_file in bronze.items() for line in of_file)
    return {day for day, line in lines if isinstance(line, str) or line.key is None}


def states_of(rows: Sequence[Told], model: SilverModel) -> dict[str, State]:
    """The state of each key in one snapshot; of several rows of a key the one with the greatest hash counts."""
    accepted = [row for row in rows if row.key is not None and not model.refuses(row)]
    return {str(row.key): (row.amount, row.note) for row in sorted(accepted, key=lambda row: row.hash)}


def by_key(rows: Iterator[tuple[Hashable, Any]]) -> dict[Any, Any]:
    """The rows by their key, which no two of them share."""
    listed = list(rows)
    found = dict(listed)
    assert len(found) == len(listed), "a key has one row"
    return found


def periods_of(shop: Lakehouse, table: str, unit: str) -> dict[str, list[Period]]:
    """The periods of each key that a table with history holds, which begin and end in hours or days."""
    found: dict[str, list[Period]] = {}
    for key, start, end, amount, note in shop.rows(table, "order_id", "__START_AT", "__END_AT", "amount", "note"):
        ends = None if end is None else (getattr(end, unit),)
        found.setdefault(key, []).append(Period((getattr(start, unit),), ends, amount, note))
    for key, of_key in found.items():
        of_key.sort(key=lambda period: period.start)
        assert not overlapping(of_key), f"the periods of {key} overlap: {of_key}"
    return found


def tombstones(shop: Lakehouse, table: str) -> dict[str | None, tuple[tuple[Any, ...], int]]:
    """key -> (sequence, hash) of the deleted keys that a table remembers."""
    path = str(tombstones_path(shop, table))
    if not DeltaTable.is_deltatable(path):
        return {}
    rows = DeltaTable(path).to_pyarrow_table(columns=["order_id", "_sequence", "_source_hash"]).to_pylist()
    return by_key((row["order_id"], (_in_hours(row["_sequence"]), row["_source_hash"])) for row in rows)


def differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """key -> (found, wanted) where the two differ."""
    keys = found.keys() | wanted.keys()
    return {key: (found.get(key), wanted.get(key)) for key in sorted(keys) if found.get(key) != wanted.get(key)}


def _in_hours(sequence: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(value.hour if name == "event_at" else value for name, value in sequence.items())

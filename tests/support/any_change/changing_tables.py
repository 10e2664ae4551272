"""The tables of a lakehouse to which anything happens: their specs, which change, and what is stored in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from deltalake import DeltaTable

from millrace.contracts.row_status import RowStatus
from tests.support.any_change.model import Row, SilverSpec
from tests.support.documents.specs import Document, bronze_document, gold_document, query_document, silver_document
from tests.support.lakehouse import Lakehouse, tombstones_path
from tests.support.silver.timelines import Period

BRONZE, LAST, HISTORY, NOTES, KEYS = TABLES = (
    *("bronze.orders", "silver.orders", "silver.states"),
    *("gold.notes", "gold.keys"),
)
SILVER, GOLD = (LAST, HISTORY), (NOTES, KEYS)
SOURCE = {NOTES: LAST, KEYS: HISTORY}
COLUMNS = {"order_id": "string", "amount": "int", "note": "string", "event_seq": "int", "op": "string"}
STORED = ("order_id", "amount", "note", "event_seq")
NEVER = {"expect_table_row_count_to_be_between": {"min_value": 10**6}, "action": "fail"}


@dataclass
class Specs:
    """What changes in the specs: of bronze, of the silver tables, and of gold."""

    most: int = 90
    of: dict[str, SilverSpec] = field(default_factory=lambda: dict.fromkeys(SILVER, SilverSpec()))
    least: int | None = None
    factor: int = 1
    is_least: bool = False

    def change(self, table: str, chance: Random) -> None:
        """Change something that needs no rebuild."""
        if table == BRONZE:
            self.most = 150 - self.most
        elif table == NOTES:
            self.least, self.factor = chance.choice([(None, 1), (5, 1), (None, 10)])
        elif table == KEYS:
            self.is_least = not self.is_least
        else:
            spec, other = self.of[table], SilverSpec(20, ("delete", "void"), 10)
            key = chance.choice(("least", "deletes", "factor"))
            self._change(table, key, getattr(SilverSpec() if getattr(spec, key) == getattr(other, key) else other, key))

    def move_rows(self, table: str, chance: Random) -> None:
        """Change the key or the sequence of a silver table."""
        if chance.random() < 0.5:
            self._change(table, "sign", -self.of[table].sign)
        else:
            self._change(table, "key_length", 11 - self.of[table].key_length)

    def _change(self, table: str, key: str, value: Any) -> None:
        self.of[table] = self.of[table]._replace(**{key: value})

    def documents(self) -> Iterator[Document]:
        """Yield the specs of all tables."""
        source = {**bronze_document()["source"], "on_changed_file": "replace"}
        columns = {name: {"type": kind} for name, kind in COLUMNS.items()}
        yield bronze_document(source=source, columns=columns, expectations=[_between(max_value=self.most)])
        history = {
            "stored_as_scd_type": 2,
            "track_history_column_list": ["amount"],
            "except_column_list": ["event_seq"],
        }
        for table, spec in self.of.items():
            read = {"order_id": f"left(order_id, {spec.key_length})", "amount": f"amount * {spec.factor}"}
            read |= {"note": "note", "event_seq": f"event_seq * {spec.sign}"}
            yield silver_document(
                table,
                sequence_by=["event_seq"],
                columns={name: {"type": COLUMNS[name], "from": read[name]} for name in STORED},
                apply_as_deletes=" OR ".join(f"op = '{op}'" for op in spec.deletes),
                expectations=[_between(min_value=spec.least)],
                **(history if table == HISTORY else {}),
            )
        where = {} if self.least is None else {"where": f"amount >= {self.least}"}
        yield gold_document(
            NOTES,
            sources={"o": {"table": LAST, **where}},
            **{"refresh_by": "note", "refresh_from": {"o": "note"}, "group_by": {"note": "o.note"}},
            measures={"orders": "count(*)", "total": f"sum(o.amount) * {self.factor}"},
        )
        most = f"{'min' if self.is_least else 'max'}(amount) AS most"
        query = f"SELECT order_id, count(*) AS periods, {most} FROM s GROUP BY order_id"
        yield query_document(KEYS, sources={"s": {"table": HISTORY}}, query=query)


def _between(**bounds: int) -> Document:
    return {"expect_column_values_to_be_between": {"column": "amount", **bounds}, "action": "quarantine"}


def expected_of(table: str, state: Any, status_of: Callable[[Row], RowStatus]) -> dict[str, Any]:
    """Return what a table must have by the model, as `stored` returns it."""
    if table in GOLD:
        return {"rows": Counter(state)}
    names = ((row, getattr(row.line, "event_seq", row.line)) for row in state.refused)
    refused = Counter((status_of(row), row.file[1], name) for row, name in names)
    if table in SILVER:
        deleted = {key: line[-1].order[0] for key, line in state.lines.items() if not line[-1].state}
        return {"rows": state.states, "refused": refused, "deleted": deleted}
    amounts = ((row, row.line.amount if isinstance(row.line.amount, int) else None) for row in state.rows)
    rows = Counter((row.file[1], *row.line._replace(amount=amount)) for row, amount in amounts)
    return {"rows": rows, "refused": refused}


def stored(shop: Lakehouse, table: str) -> dict[str, Any]:
    """Return what a table has: its rows, those in quarantine with their statuses, and its deleted keys."""
    if table in GOLD:
        names = ("note", "orders", "total") if table == NOTES else ("order_id", "periods", "most")
        return {"rows": Counter(shop.rows(table, *names))}
    waiting = shop.waiting(table, *RowStatus)
    refused = Counter((row.status, row.source.rpartition("/")[2], _line_of(row.record)) for row in waiting)
    if table == BRONZE:
        rows = shop.rows(BRONZE, "_source_file", *COLUMNS)
        return {"rows": Counter((file.rpartition("/")[2], *of_row) for file, *of_row in rows), "refused": refused}
    states: dict[str, Any] = {}
    if table == HISTORY:
        for key, *period in shop.rows(table, "order_id", "__START_AT", "__END_AT", "amount", "note"):
            states[key] = sorted([*states.get(key, []), Period(*period)])
        current = {key: of_key[-1].start for key, of_key in states.items() if of_key[-1].end is None}
    else:
        rows = shop.rows(table, *STORED)
        states = {key: (sequence, (amount, note)) for key, amount, note, sequence in rows}
        assert len(states) == len(rows), "a key has one row"
        current = {key: sequence for key, (sequence, _) in states.items()}
    return {"rows": states, "refused": refused, "deleted": _deleted(shop, table, current)}


def _line_of(record: str) -> int | str:
    """Return the `event_seq` of a quarantined row, or the text of a broken line."""
    try:
        return abs(json.loads(record)["event_seq"])
    except ValueError:
        return record


def _deleted(shop: Lakehouse, table: str, current: dict[str, int]) -> dict[str, int]:
    """Return key -> sequence of the tombstones of keys without a current row; no other may hide such a row."""
    path = str(tombstones_path(shop, table))
    if not DeltaTable.is_deltatable(path):
        return {}
    rows = DeltaTable(path).to_pyarrow_table(columns=["order_id", "_sequence"]).to_pylist()
    deleted = {row["order_id"]: row["_sequence"]["event_seq"] for row in rows}
    assert len(deleted) == len(rows), "a key has one tombstone"
    assert all(deleted[key] <= current[key] for key in deleted.keys() & current.keys())
    return {key: sequence for key, sequence in deleted.items() if key not in current}

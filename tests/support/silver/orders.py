"""Rows of orders as a source delivers them, with the hash that decides between equal sequences."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

from pyspark.sql import functions as F

from millrace_spark.runtime.session import own_session
from millrace_spark.transforms.silver.changes import row_hash
from millrace_spark.transforms.silver.silver import source_columns
from tests.support.documents.specs import Document, bronze_document

KEYS = [f"o{number}" for number in range(60)]
COLUMNS = {
    "order_id": "string",
    "amount": "int",
    "note": "string",
    "event_at": "timestamp",
    "event_seq": "int",
    "op": "string",
}
HOURS = 12


class OrderRow(NamedTuple):
    """One row of a landing file; `op` is `delete`, `truncate` or nothing."""

    key: str | None
    amount: int | None
    note: str | None = None
    hour: int | None = 0
    seq: int | None = 1
    op: str | None = None
    hash: int = 0

    def as_record(self) -> dict[str, Any]:
        """Return the row as the source writes it."""
        at = None if self.hour is None else f"2013-01-01T{self.hour:02d}:00:00Z"
        values = (self.key, self.amount, self.note, at, self.seq, self.op)
        return dict(zip(COLUMNS, values, strict=True))


def orders_document(**changes: Any) -> Document:
    """Return the spec of a bronze table of such rows; a changed file replaces its earlier rows."""
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    columns = {name: {"type": kind} for name, kind in COLUMNS.items()}
    return bronze_document(source=source, columns=columns, **changes)


def some_events(chance: Random, of_each_key: int) -> list[OrderRow]:
    """Return events of each key with few different sequences; rules refuse some, and some lack key or sequence."""
    return [
        OrderRow(
            key=None if chance.random() < 0.01 else key,
            amount=chance.choice([None, 1, 2, 3, -1]),
            note=chance.choice([None, "a", "b"]),
            hour=None if chance.random() < 0.01 else chance.randrange(HOURS),
            seq=chance.choices([1, 2, None], [50, 50, 2])[0],
            op="delete" if chance.random() < 0.2 else None,
        )
        for key in KEYS
        for _ in range(of_each_key)
    ]


def some_truncates(chance: Random, number: int) -> list[OrderRow]:
    """Return truncates of the first hours; some have a key, and a null makes some of them invalid."""
    return [
        OrderRow(
            key=chance.choice([None, *KEYS[:5]]),
            amount=chance.choice([None, 1]),
            hour=None if chance.random() < 0.1 else chance.randrange(HOURS // 2),
            seq=chance.choice([1, 2]),
            op="truncate",
        )
        for _ in range(number)
    ]


def with_hashes(rows: Sequence[OrderRow]) -> list[OrderRow]:
    """Return the rows with the hash that silver computes from their columns in bronze."""
    numbered = [(number, *row.as_record().values(), None) for number, row in enumerate(rows)]
    texts = {**COLUMNS, "event_at": "string", "_rescued": "string"}
    schema = ", ".join(f"{name} {kind}" for name, kind in {"number": "int", **texts}.items())
    with own_session({}) as session:
        received = session.createDataFrame(numbered, schema).withColumn("event_at", F.col("event_at").cast("timestamp"))
        columns = source_columns(received.drop("number"))
        hashes = dict(received.select("number", row_hash(columns)).collect())
    return [row._replace(hash=hashes[number]) for number, row in enumerate(rows)]

"""Orders by a seeded generator in DuckDB's SQL: a table of any size, and events of some orders.

Orders have even numbers, in the order of their arrival: 2, 4, ... The numbers between them are free for new ones. Every
value follows from the number of the order and of the event alone, so an order can be delivered once more as it was.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

import duckdb
import yaml

BRONZE, SILVER = "bronze.orders", "silver.orders"
LOADED, CHANGED = "2025-01-01", "2025-01-02"
"""The day on which all orders arrive, and the day of the merged batch."""

COLUMNS = {
    "id": "bigint",
    "customer": "int",
    "amount": "decimal(10,2)",
    "status": "string",
    "country": "string",
    "ts": "timestamp",
    "md5": "string",
}
BATCH = 10_000
UPDATES = BATCH * 8 // 10
INSERTS = BATCH - UPDATES
_FILES = 8
_SEED = 20251
_STATES = ("new", "paid", "sent", "returned")
_COUNTRIES = ("AT", "BE", "CH", "CZ", "DE", "DK", "ES", "FI", "FR", "GB", "IE", "IT", "NL", "NO", "PL", "PT", "SE")
_BEGIN, _MS_BETWEEN = "TIMESTAMPTZ '2024-01-01 00:00:00+00'", 100


class Kind(StrEnum):
    """The orders of a batch of `BATCH` events."""

    RECENT = "recent"
    UNIFORM = "uniform"
    UNCHANGED = "unchanged"


def events(ids: str, table_rows: int, op: str = "upsert") -> str:
    """Return SQL of events.

    Args:
        ids: SQL of `id` and `event`: 0 is the order's arrival, which is always the same; later ones change it.
        table_rows: how many orders arrive before anything happens to one of them.
        op: `upsert` or `delete`.
    """
    now = f"greatest(id // 2, {table_rows} + 1) * {_MS_BETWEEN}"
    arrived = f"if(event = 0 AND id % 2 = 0, id // 2 * {_MS_BETWEEN}, {now} + event)"
    return f"""
        SELECT id::BIGINT AS id, (1 + hash(id, {_SEED}) % 100000)::INTEGER AS customer,
            ((hash(id, event, {_SEED + 1}) % 100000) / 100)::DECIMAL(10, 2) AS amount,
            {_one_of(_STATES, "event")} AS status, {_one_of(_COUNTRIES, "0")} AS country,
            {_BEGIN} + to_milliseconds({arrived}) AS ts,
            md5(concat_ws('/', id, event, {_SEED})) AS md5, '{op}' AS op
        FROM ({ids})"""


def arrivals(table_rows: int) -> str:
    """Return SQL of the orders as they arrive."""
    return events(f"SELECT 2 * i AS id, 0 AS event FROM range(1, {table_rows} + 1) t(i)", table_rows)


def batch(kind: Kind, table_rows: int) -> str:
    """Return SQL of `BATCH` events: four fifths are of existing orders, except for `UNCHANGED`."""
    if kind is Kind.UNCHANGED:
        return events(_spread(BATCH, table_rows, "2 * i", event=0), table_rows)
    if kind is Kind.UNIFORM:
        return uniform(UPDATES, INSERTS, table_rows)
    existing = f"SELECT 2 * ({table_rows} - 2 * i) AS id, 1 AS event FROM range({UPDATES}) t(i)"
    new = f"SELECT 2 * ({table_rows} + 1 + i) AS id, 0 AS event FROM range({INSERTS}) t(i)"
    return events(f"{existing} UNION ALL {new}", table_rows)


def uniform(updates: int, inserts: int, table_rows: int) -> str:
    """Return SQL of events of known and of new orders, for every part of the table."""
    existing = _spread(updates, table_rows, "2 * i", event=1)
    new = _spread(inserts, table_rows, "2 * i - 1", event=0)
    return events(f"{existing} UNION ALL {new}", table_rows)


def deliver(landing: Path, day: str, sql: str, files: int = 1, name: str = "orders") -> None:
    """Write rows as a day's delivery, in files of consecutive rows; an existing delivery does not change."""
    folder = landing / name / f"date={day}"
    if folder.exists():
        return
    unfinished = folder.with_name(f"unfinished {folder.name}")
    unfinished.mkdir(parents=True, exist_ok=True)
    with duckdb.connect() as source:
        source.execute("SET TimeZone = 'UTC'")
        source.execute(f"CREATE TEMP TABLE rows AS SELECT *, row_number() OVER (ORDER BY id) - 1 AS place FROM ({sql})")
        [(count,)] = source.execute("SELECT count(*) FROM rows").fetchall()
        for number in range(files):
            part = f"SELECT * EXCLUDE place FROM rows WHERE place * {files} // {count} = {number} ORDER BY id"
            source.execute(f"COPY ({part}) TO '{unfinished}/orders-{number}.parquet' (COMPRESSION zstd)")
    unfinished.rename(folder)


def deliver_arrivals(landing: Path, table_rows: int) -> None:
    """Write the orders of a table as one day's delivery."""
    deliver(landing, LOADED, arrivals(table_rows), _FILES)


def write_specs(folder: Path) -> Path:
    """Write the specs of both layers, which refuse nothing."""
    columns = {name: {"type": kind} for name, kind in COLUMNS.items()}
    source = {"landing": "orders", "files": "*.parquet", "format": "parquet"}
    bronze = {"table": BRONZE, "source": source, "columns": {**columns, "op": {"type": "string"}}}
    silver = {
        "table": SILVER, "source": BRONZE, "keys": ["id"], "sequence_by": ["ts"], "apply_as_deletes": "op = 'delete'",
        "columns": columns, "zorder_by": ["id"],
    }  # fmt: skip
    for spec in (bronze, silver):
        layer, name = str(spec["table"]).split(".")
        path = folder / layer / "bench" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(spec, sort_keys=False))
    return folder


def _spread(count: int, table_rows: int, number: str, event: int) -> str:
    """Return SQL of orders, one from each equal part of the table; `number` is the expression of the id of `i`."""
    part = f"k * {table_rows} // {count} + hash(k, {count}, {_SEED}) % {table_rows // count}"
    return f"SELECT {number} AS id, {event} AS event FROM (SELECT (1 + {part})::BIGINT AS i FROM range({count}) t(k))"


def _one_of(values: tuple[str, ...], event: str) -> str:
    listed = ", ".join(f"'{value}'" for value in values)
    return f"([{listed}])[(1 + hash(id, {event}, {_SEED + 2}) % {len(values)})::INTEGER]"

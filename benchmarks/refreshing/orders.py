"""Delta tables of orders and customers with a change feed, written by DuckDB and delta-rs: they need no Spark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import duckdb
from deltalake import DeltaTable, WriterProperties, write_deltalake

DAYS, CUSTOMERS = 1_000, 50_000
ORDER_COLUMNS = {
    "id": "bigint", "customer": "int", "day": "date", "amount": "decimal(10,2)", "status": "string",
    "country": "string", "md5": "string", "basket": "bigint",
}  # fmt: skip
CUSTOMER_COLUMNS = {"id": "int", "segment": "string"}
_FILES, _LARGEST_FILE = 24, "16777216"
_ZSTD = WriterProperties(compression="ZSTD")
_ORDERS = """
SELECT id, CAST(hash(id, 3) % {customers} AS INT) AS customer,
    DATE '2020-01-01' + CAST(id * {days} // {rows} AS INT) AS day,
    CAST(hash(id, 2) % 100000 / 100 AS DECIMAL(10, 2)) AS amount,
    ['new', 'paid', 'sent', 'returned'][1 + id % 4] AS status,
    ['AT', 'BE', 'CH', 'DE', 'DK', 'ES', 'FR', 'IT'][1 + id % 8] AS country,
    md5(CAST(id AS VARCHAR)) AS md5, id // 10 AS basket
FROM range({first}, {end}) AS orders(id)
"""


def write_orders(path: Path, rows: int) -> None:
    """Write orders whose files follow each other by number, day and basket of ten; the customers are in all files."""
    ends = [rows * number // _FILES for number in range(_FILES + 1)]
    for first, end in pairwise(ends):
        query = _ORDERS.format(customers=CUSTOMERS, days=DAYS, rows=rows, first=first, end=end)
        _append(path, query)


def write_customers(path: Path) -> None:
    """Write the customers, each in one of 20 segments."""
    _append(path, f"SELECT CAST(id AS INT) AS id, 'segment ' || id % 20 AS segment FROM range({CUSTOMERS}) AS all_(id)")


def change_orders(path: Path, where: str) -> int:
    """Add 1 to the amount of the orders that meet a condition, and return their number."""
    added = {"amount": "CAST(amount + 1 AS DECIMAL(10, 2))"}
    changed = DeltaTable(str(path)).update(added, predicate=where, writer_properties=_ZSTD)
    return int(changed["num_updated_rows"])


def _append(path: Path, query: str) -> None:
    write_deltalake(
        str(path),
        duckdb.sql(query).to_arrow_table(),
        mode="append",
        configuration={"delta.enableChangeDataFeed": "true", "delta.targetFileSize": _LARGEST_FILE},
        writer_properties=_ZSTD,
    )

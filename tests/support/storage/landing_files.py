"""Landing files of every format for one run of a bronze table: fields of any name, and parts of fields."""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from millrace.contracts.job.report import JobReport
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse

ORDERS = "bronze.orders"
DAY = "orders/date=2013-01-01"

FIELD_COLUMNS: dict[str, dict[str, Any]] = {
    "client": {"from": "Client ID"},
    "price": {"type": "int", "from": "`Price.in €`"},
    "size": {"from": "größe \"x\" 'y'"},
    "note": {"from": "```note```"},
    "name": {"from": "client"},
    "source": {"from": "_source_file"},
}
"""Columns of fields with hostile names, also with the names of other columns."""

FIELDS = ["Client ID", "Price.in €", "größe \"x\" 'y'", "`note`", "client", "_source_file", "price", "size.1"]
FIELD_RECORDS: list[list[Any]] = [
    ["c1", 5, "XL", "n", "Ann", "s", "undeclared", "u"],
    ["c2", "much", "L", None, "Bob", None, None, None],
]
FIELD_ROWS = [
    ("c1", 5, "XL", "n", "Ann", "s", {"price": "undeclared", "`size.1`": "u"}),
    ("c2", None, "L", None, "Bob", None, {"`Price.in €`": "much"}),
]
"""Their values, and what is rescued."""

PART_COLUMNS: dict[str, dict[str, Any]] = {
    "order_no": {"from": "order.`No.`"},
    "city": {"from": "buyer.address.city"},
    "zip": {"type": "int", "from": "buyer.address.zip"},
    "first_price": {"type": "decimal(9,2)", "from": "items[0].price"},
    "b_city": {"from": "`buyer.address.city`"},
}
"""Columns of parts of fields, and of a field with the name of such a part."""

PART_RECORDS: list[dict[str, Any]] = [
    {
        "order": {"No.": "o1"},
        "buyer": {"address": {"city": "Köln", "zip": "50667"}},
        "items": [{"price": 1.5}],
        "buyer.address.city": "top",
    },
    {"order": {"No.": "o2"}, "buyer": {"address": {"city": "Bonn", "zip": "D-53"}}, "items": []},
    {"order": {"No.": "o3"}, "buyer": {"address": None}, "items": [{"price": 2.25}, {"price": 3.5}]},
    {"order": {"No.": "o4"}, "buyer": None, "items": None},
]


def load_files(shop: Lakehouse, files: Mapping[str, bytes], **spec: Any) -> JobReport:
    """Deliver files of a day, and load them into a bronze table of this spec."""
    shop.specs(bronze_document(ORDERS, **spec))
    for name, content in files.items():
        shop.deliver(1, name, content)
    return shop.run(ORDERS)


def rows_of_file(shop: Lakehouse, names: str | Iterable[str], *columns: str) -> list[tuple[Any, ...]]:
    """Return these columns of the rows of a file, or of several."""
    paths = {f"{DAY}/{name}" for name in ([names] if isinstance(names, str) else names)}
    return [row[:-1] for row in shop.rows(ORDERS, *columns, "_source_file") if row[-1] in paths]


def parquet_of(records: list[dict[str, Any]]) -> bytes:
    """Return a Parquet file of records."""
    stored = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), stored)
    return stored.getvalue()


def avro_of(kinds: Mapping[str, Any], *records: Mapping[str, Any], codec: str = "null") -> bytes:
    """Return an Avro file of records with fields of these types, as another writer than Spark makes it."""
    schema = {"type": "record", "name": "order", "fields": [{"name": name, "type": kinds[name]} for name in kinds]}
    stored = io.BytesIO()
    fastavro.writer(stored, schema, records, codec=codec)
    return stored.getvalue()


def packed_avro_of(kinds: Mapping[str, Any], codec: str, pack: Callable[[bytes], bytes], *records: Any) -> bytes:
    """Return such a file with a compression that Python's writer does not have: one block of it, packed."""

    def number(value: int) -> bytes:
        stored = io.BytesIO()
        fastavro.schemaless_writer(stored, "long", value)
        return stored.getvalue()

    def text(value: str) -> bytes:
        return number(len(value)) + value.encode()

    plain, block = avro_of(kinds, *records), io.BytesIO()
    schema = fastavro.parse_schema(fastavro.reader(io.BytesIO(plain)).writer_schema)
    for each in records:
        fastavro.schemaless_writer(block, schema, each)
    packed, sync = pack(block.getvalue()), plain[-16:]
    header = plain[: plain.index(sync)].replace(text("null"), text(codec), 1)
    return header + sync + number(len(records)) + number(len(packed)) + packed + sync


def snappy_block(block: bytes) -> bytes:
    """Return a block as Avro has it for Snappy: with the checksum of its content."""
    packed: bytes = pa.Codec("snappy").compress(block, asbytes=True)
    return packed + zlib.crc32(block).to_bytes(4, "big")


def json_of(records: Iterable[Mapping[str, Any]]) -> bytes:
    """Return records as JSON lines."""
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def require_fields(shop: Lakehouse, file: str) -> None:
    """Check that the values of `FIELD_RECORDS` are in the columns that name their fields."""
    rows = rows_of_file(shop, file, *FIELD_COLUMNS, "_rescued")
    assert [(*row[:-1], json.loads(row[-1])) for row in rows] == FIELD_ROWS
    notes = " ".join(shop.reports[-1].notes)
    assert "1 row has a value of `Price.in €` that is no int: null there" in notes
    assert ("'price' in 1" in notes, "'`size.1`' in 1" in notes) == (True, True)


def require_parts(shop: Lakehouse, file: str) -> None:
    """Check that the columns of parts of `PART_RECORDS` have their values, and that no other part is lost."""
    rows = rows_of_file(shop, file, *PART_COLUMNS, "_rescued")
    assert [row[:-1] for row in rows] == [
        ("o1", "Köln", 50667, Decimal("1.50"), "top"),
        ("o2", "Bonn", None, None, None),
        ("o3", None, None, Decimal("2.25"), None),
        ("o4", None, None, None, None),
    ]
    assert [row[-1] and json.loads(row[-1]) for row in rows] == [
        None,
        {"buyer.address.zip": "D-53"},
        {"items": json.dumps(PART_RECORDS[2]["items"], separators=(",", ":"))},
        None,
    ]
    notes = "\n".join(shop.reports[-1].notes)
    assert "1 row has a value of buyer.address.zip that is no int, or not the last of its name: not stored" in notes
    assert "1 row has a value of items with more than its parts items[0].price: kept whole in _rescued" in notes

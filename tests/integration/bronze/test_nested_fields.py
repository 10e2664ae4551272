"""Nested values of files: stored in bronze by their type, and their parts in silver."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedded.spark.server import SparkServer
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse

ORDERS, SILVER = "bronze.orders", "silver.orders"
COLUMNS = {
    "order_id": {},
    "customer": {"type": "struct<name: string, at: timestamp>", "from": "The Customer"},
    "tags": {"type": "array<string>"},
    "counts": {"type": "map<string, int>"},
}
SILVER_COLUMNS = {
    "order_id": {},
    "name": {"from": "customer.name"},
    "tag": {"from": "get(tags, 0)"},
    "apples": {"type": "int", "from": "counts['apples']"},
}


def silver(**changes: Any) -> dict[str, Any]:
    return silver_document(keys=["order_id"], sequence_by=["order_id"], columns=SILVER_COLUMNS, **changes)


def test_json_values_are_stored_by_their_type_and_silver_takes_their_parts(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(columns=COLUMNS), silver())
    customer = {"name": "Ann", "at": "2013-01-01T08:00:00Z"}
    lakehouse.deliver(1, "a.json", [
        {"order_id": "o1", "The Customer": customer, "tags": ["a", None], "counts": {"apples": "3", "a.b": 1}},
        {"order_id": "o2", "The Customer": {**customer, "vip": True}, "tags": "a", "counts": {"apples": "many"}},
        {"order_id": "o3", "The Customer": {}, "tags": [], "counts": None},
    ])  # fmt: skip
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    moment = datetime(2013, 1, 1, 8, tzinfo=UTC)
    first, second, third = lakehouse.rows(ORDERS, *COLUMNS, "_rescued")
    assert first[1:4] == ({"name": "Ann", "at": moment}, ["a", None], [("apples", 3), ("a.b", 1)])
    assert second[1:4] == ({"name": "Ann", "at": moment}, None, None)
    assert json.loads(json.loads(second[4])["The Customer"]) == {**customer, "vip": True}
    assert json.loads(second[4]).keys() == {"The Customer", "tags", "counts"}
    assert third[1:] == ({"name": None, "at": None}, [], None, None)
    note = "1 row has a value of tags that does not fit array<string>: kept whole in _rescued: 'a'"
    assert any(note in line for line in report.notes), report.notes
    assert lakehouse.run(SILVER).outcome is Outcome.COMMITTED
    assert lakehouse.rows(SILVER, *SILVER_COLUMNS) == [
        ("o1", "Ann", "a", 3), ("o2", "Ann", None, None), ("o3", None, None, None)
    ]  # fmt: skip
    assert lakehouse.run(ORDERS).rows.read == 0, "the table fits its spec"


def test_parquet_values_of_the_declared_type_and_of_another_one_load_together(
    tmp_path: Path, server: SparkServer
) -> None:
    lakehouse = Lakehouse(tmp_path)
    source = {"landing": "orders", "format": "parquet"}
    columns = {
        "order_id": {},
        "customer": {"type": "struct<name: string, at: timestamp>"},
        "tags": {"type": "array<int>"},
    }
    lakehouse.specs(bronze_document(source=source, columns=columns))
    moment = datetime(2013, 1, 1, 8, 0, 0, 123456, UTC)
    same = {"order_id": "o1", "customer": {"name": "Ann", "at": moment}, "tags": [1]}
    other = {"order_id": "o2", "customer": {"at": moment, "name": "Bob"}, "tags": ["2"]}
    for name, row in (
        ("a", same),
        ("b", other),
        ("c", {"order_id": "o3"}),
        ("d", {**same, "order_id": "o4", "tags": 5}),
    ):
        stored = io.BytesIO()
        pq.write_table(pa.Table.from_pylist([row]), stored)
        lakehouse.deliver(1, f"{name}.parquet", stored.getvalue())
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert lakehouse.rows(ORDERS, *columns, "_rescued") == [
        ("o1", {"name": "Ann", "at": moment}, [1], None),
        ("o2", {"name": "Bob", "at": moment}, [2], None),
        ("o3", None, None, None),
        ("o4", {"name": "Ann", "at": moment}, None, '{"tags":"5"}'),
    ]


def test_a_part_that_alone_differs_makes_another_event(lakehouse: Lakehouse) -> None:
    columns = {**COLUMNS, "at": {"type": "timestamp"}}
    own = {"name": {"from": "customer.name"}, "at": {"type": "timestamp"}, "order_id": {}}
    lakehouse.specs(
        bronze_document(columns=columns), silver_document(keys=["order_id"], sequence_by=["at"], columns=own)
    )
    order = {"order_id": "o1", "at": "2013-01-01T00:00:00Z", "tags": []}
    for number, customer in enumerate(({"name": "Ann"}, {"at": "2013-01-01T00:00:00Z"})):
        lakehouse.deliver(1, f"{number}.json", [{**order, "The Customer": customer}])
    lakehouse.run(ORDERS)
    assert lakehouse.run(SILVER).rows.superseded == 1


PART_COLUMNS: dict[str, dict[str, Any]] = {
    "order_id": {"from": "order.`No.`"},
    "city": {"from": "customer.address.city"},
    "zip": {"type": "int", "from": "customer.address.zip"},
    "price": {"type": "decimal(9,2)", "from": "items[0].price"},
    "a_b": {"from": "`customer.address.city`"},
}
PART_RECORDS: list[dict[str, Any]] = [
    {
        "order": {"No.": "o1"},
        "customer": {"address": {"city": "Köln", "zip": "50667"}},
        "items": [{"price": 1.5}],
        "customer.address.city": "top",
    },
    {"order": {"No.": "o2"}, "customer": {"address": {"city": "Bonn", "zip": "D-53"}}, "items": []},
    {"order": {"No.": "o3"}, "customer": {"address": None}, "items": [{"price": 2.25}, {"price": 3.5}]},
    {"order": {"No.": "o4"}, "customer": None, "items": None},
]


def json_of(records: list[dict[str, Any]]) -> bytes:
    return "\n".join(map(json.dumps, records)).encode()


def parquet_of(records: list[dict[str, Any]]) -> bytes:
    stored = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), stored)
    return stored.getvalue()


def avro_of(records: list[dict[str, Any]]) -> bytes:
    def record(name: str, **fields: Any) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": n, "type": kind} for n, kind in fields.items()]}

    address = record("address", city="string", zip="string")
    items = {"type": "array", "items": record("item", price="double")}
    schema = record(
        "sale", order=record("orders", No="string"), customer=["null", record("customer", address=["null", address])],
        items=["null", items], top=["null", "string"],
    )  # fmt: skip
    stored = io.BytesIO()
    renamed = [
        {**each, "order": {"No": each["order"]["No."]}, "top": each.get("customer.address.city")} for each in records
    ]
    fastavro.writer(stored, schema, renamed)
    return stored.getvalue()


@pytest.mark.parametrize(("suffix", "content"), [("json", json_of), ("parquet", parquet_of), ("avro", avro_of)])
def test_columns_read_parts_of_fields(tmp_path: Path, server: SparkServer, suffix: str, content: Any) -> None:
    lakehouse, columns = Lakehouse(tmp_path), dict(PART_COLUMNS)
    if suffix == "avro":  # Avro has no names with dots.
        columns |= {"order_id": {"from": "order.No"}, "a_b": {"from": "top"}}
    lakehouse.specs(bronze_document(source={"landing": "orders", "format": suffix}, columns=columns))
    lakehouse.deliver(1, f"a.{suffix}", content(PART_RECORDS))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    rows = lakehouse.rows(ORDERS, *columns, "_rescued")
    assert [row[:5] for row in rows] == [
        ("o1", "Köln", 50667, Decimal("1.50"), "top"),
        ("o2", "Bonn", None, None, None),
        ("o3", None, None, Decimal("2.25"), None),
        ("o4", None, None, None, None),
    ]
    rescued = [{field: json.loads(text) for field, text in json.loads(row[5] or "{}").items()} for row in rows]
    assert rescued == [
        {}, {"customer": PART_RECORDS[1]["customer"]}, {"items": PART_RECORDS[2]["items"]}, {}
    ]  # fmt: skip
    paths = "customer.address.city, customer.address.zip"
    note = f"1 row has a value of customer that does not fit its parts {paths}: kept whole in _rescued"
    assert any(note in line for line in report.notes), report.notes


def test_a_file_with_a_field_named_like_a_path_says_how_to_read_it(tmp_path: Path, server: SparkServer) -> None:
    lakehouse = Lakehouse(tmp_path)
    source = {"landing": "orders", "format": "parquet"}
    columns = {name: {"from": f"address.{name}", "required": True} for name in ("city", "zip")}
    lakehouse.specs(bronze_document(source=source, columns=columns))
    lakehouse.deliver(1, "a.parquet", parquet_of([{"address.city": "Bonn"}]))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "has no column address; its columns" in report.message
    assert "from: '`address.city`' reads the field of this name" in report.message

"""A bronze column reads a field of any name, from files of every format."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedded.spark.server import SparkServer
from include.control.ledger.new_columns import ColumnState, NewColumns
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse

ORDERS = "bronze.orders"
COLUMNS: dict[str, dict[str, Any]] = {
    "order_id": {"from": "Order ID"},
    "amount": {"type": "int", "from": "`Amount.in €`"},
    "size": {"from": "größe \"x\" 'y'"},
    "note": {"from": "```note```"},
    "name": {"from": "order_id"},
    "source": {"from": "_source_file"},
}
FIELDS = ["Order ID", "Amount.in €", "größe \"x\" 'y'", "`note`", "order_id", "_source_file", "amount", "size.1"]
RECORDS = [["o1", 5, "XL", "n", "Ann", "s", "undeclared", "u"], ["o2", "many", "L", None, "Bob", None, None, None]]
ROWS = [
    ("o1", 5, "XL", "n", "Ann", "s", {"amount": "undeclared", "size.1": "u"}),
    ("o2", None, "L", None, "Bob", None, {"Amount.in €": "many"}),
]


def csv_file() -> bytes:
    header = ",".join('"' + field.replace('"', '""') + '"' for field in FIELDS)
    return "\n".join([header, *(",".join(str(value or "") for value in record) for record in RECORDS)]).encode()


def json_lines() -> bytes:
    dicts = ({field: value for field, value in zip(FIELDS, record, strict=True) if value} for record in RECORDS)
    return "\n".join(map(json.dumps, dicts)).encode()


def json_array() -> bytes:
    return b"[" + json_lines().replace(b"\n", b",\n") + b"]"


def parquet_file() -> bytes:
    stored, texts = io.BytesIO(), [[None if value is None else str(value) for value in record] for record in RECORDS]
    columns = zip(FIELDS, zip(*texts, strict=True), strict=True)
    pq.write_table(pa.table({field: list(values) for field, values in columns}), stored)
    return stored.getvalue()


def rows_of(lakehouse: Lakehouse) -> list[tuple[Any, ...]]:
    rows = lakehouse.rows(ORDERS, *COLUMNS, "_rescued")
    return [(*row[:-1], json.loads(row[-1])) for row in rows]


@pytest.mark.parametrize(
    ("file_format", "content"),
    [("csv", csv_file()), ("json", json_lines()), ("json", json_array()), ("parquet", parquet_file())],
    ids=["csv", "json lines", "json array", "parquet"],
)
def test_values_are_in_the_columns_that_name_their_fields(
    tmp_path: Path, server: SparkServer, file_format: str, content: bytes
) -> None:
    lakehouse = Lakehouse(tmp_path)
    source = {"landing": "orders", "format": file_format}
    lakehouse.specs(bronze_document(source=source, columns=COLUMNS))
    lakehouse.deliver(1, f"a.{file_format}", content)
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert rows_of(lakehouse) == ROWS
    assert "1 row has a value of Amount.in € that is no int: null there" in " ".join(report.notes)
    assert "no column is declared for, kept in _rescued: 'amount' in 1, 'size.1' in 1" in " ".join(report.notes)


def test_avro_names_are_read_in_any_case(tmp_path: Path, server: SparkServer) -> None:
    lakehouse = Lakehouse(tmp_path)
    source = {"landing": "orders", "format": "avro", "field_names": "any_case"}
    lakehouse.specs(bronze_document(source=source, columns={"order_id": {"from": "ORDER_No"}, "colour": {}}))
    fields = [{"name": name, "type": "string"} for name in ("order_NO", "COLOUR", "order_id")]
    avro = io.BytesIO()
    schema = {"type": "record", "name": "order", "fields": fields}
    fastavro.writer(avro, schema, [{"order_NO": "o1", "COLOUR": "red", "order_id": "x"}])
    lakehouse.deliver(1, "a.avro", avro.getvalue())
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert lakehouse.rows(ORDERS, "order_id", "colour", "_rescued") == [("o1", "red", '{"order_id":"x"}')]


def test_files_whose_names_differ_in_case_load_together(tmp_path: Path, server: SparkServer) -> None:
    lakehouse = Lakehouse(tmp_path)
    source = {"landing": "orders", "format": "csv", "field_names": "any_case"}
    lakehouse.specs(bronze_document(source=source, columns={"order_id": {"required": True}, "amount": {"type": "int"}}))
    for name, header in {
        "a": "ORDER_ID,Amount",
        "b": "amount,order_id",
        "c": "Order_Id",
        "d": "order_id,ORDER_ID",
    }.items():
        lakehouse.deliver(1, f"{name}.csv", f"{header}\n1,2\n" if "," in header else f"{header}\n1\n")
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "d.csv: the column order_id could read order_id and ORDER_ID" in report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount") == [("1", 2), ("1", None), ("2", 1)]
    assert "c.csv has no column amount: null in its row" in " ".join(report.notes)


def test_a_new_field_becomes_no_column_that_reads_another_field(lakehouse: Lakehouse) -> None:
    columns = {"order_id": {"from": "Order ID"}, "amount": {"type": "int", "from": "total"}}
    lakehouse.specs(bronze_document(on_drift="evolve", columns=columns))
    lakehouse.deliver(1, "a.json", [{"Order ID": "o1", "total": "many", "order_id": "x", "colour": "red"}])
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert [column.name for column in NewColumns(lakehouse.paths).of(ORDERS, ColumnState.APPROVED)] == ["colour"]
    [(*values, rescued)] = lakehouse.rows(ORDERS, "order_id", "amount", "colour", "_rescued")
    assert (values, json.loads(rescued)) == (["o1", None, "red"], {"total": "many", "order_id": "x"})


def test_a_strict_spec_accepts_the_fields_that_its_columns_read(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(on_drift="fail", columns={"order_id": {"from": "Order ID"}}))
    lakehouse.deliver(1, "a.json", [{"Order ID": "o1"}])
    lakehouse.deliver(1, "b.json", [{"order_id": "o2"}])
    report = lakehouse.run(ORDERS)
    assert 'b.json: values that fit no column: {"order_id":"o2"}' in report.message
    assert lakehouse.rows(ORDERS, "order_id") == [("o1",)]


def test_another_field_for_a_column_is_a_change_of_its_rows(lakehouse: Lakehouse) -> None:
    columns = {"order_id": {"nullable": False, "from": "Order ID"}}
    silver = silver_document(keys=["order_id"], sequence_by=["order_id"], columns={"order_id": {}})
    lakehouse.specs(bronze_document(columns=columns), silver)
    lakehouse.deliver(1, "a.json", [{"Order ID": "o1"}, {"Order Id": "o2"}])
    lakehouse.run(ORDERS)
    assert [row["reasons"] for row in lakehouse.quarantine(ORDERS)] == [
        ["expect_column_values_to_not_be_null(order_id): order_id is null"]
    ]
    lakehouse.run("silver.orders")
    assert lakehouse.rows("silver.orders", "order_id") == [("o1",)]
    lakehouse.specs(bronze_document(columns={"order_id": {"nullable": False, "from": "Order Id"}}), silver)
    lakehouse.deliver(2, "b.json", [{"Order Id": "o3"}])
    report = lakehouse.run(ORDERS, 2)
    assert "columns.order_id.from: Order ID becomes Order Id" in " ".join(report.notes)
    assert "lakehouse rebuild bronze.orders" in " ".join(report.notes)

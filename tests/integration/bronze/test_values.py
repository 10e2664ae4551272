"""Single records and values are typed, rescued or quarantined; no value is changed silently."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from include.contracts.job.report import FileRows
from include.control.landing.file_states import file_states
from include.control.ledger.ledger import Ledger
from include.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def test_an_unparsable_line_is_quarantined_and_an_invalid_value_is_rescued(
    lakehouse: Lakehouse,
) -> None:
    good = '{"order_id": "o1", "amount": 5, "day": "2013-01-01"}'
    odd = '{"order_id": "o2", "amount": "many", "day": "2013-13-45", "colour": "red"}'
    lakehouse.deliver(1, "a.json", f"{good}\n{{broken\n\n{odd}\nnot json either\n")
    report = lakehouse.run(ORDERS)
    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (4, 2, 2)
    assert lakehouse.rows(ORDERS, "order_id", "amount", "day", "_rescued") == [
        ("o1", 5, date(2013, 1, 1), None),
        ("o2", None, None, '{"amount":"many","day":"2013-13-45","colour":"red"}'),
    ]
    [file] = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    assert file.rows == FileRows(read=4, written=2, rescued=1, quarantined=2)
    assert [(one.field, one.type, one.rows, one.samples) for one in report.findings.rescued] == [
        ("amount", "int", 1, ("many",)), ("colour", "", 1, ("red",)), ("day", "date", 1, ("2013-13-45",))
    ]  # fmt: skip
    assert "bronze.orders: 1 row has a value of amount that is no int: null there, kept in _rescued: 'many'" in (
        report.notes
    )
    found = sorted((row["position"], row["record"], row["reasons"]) for row in lakehouse.quarantine(ORDERS))
    assert [(position, record) for position, record, _ in found] == [(2, "{broken"), (4, "not json either")]
    assert all(reasons == ["malformed record: it cannot be parsed as json"] for _, _, reasons in found)


def test_csv_rows_with_too_few_or_too_many_values_are_quarantined(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*.csv", "format": "csv"}))
    header = "event_seq,order_id,amount,day,event_at,colour\n"
    lines = ["1,o1,5,2013-01-01,2013-01-01T00:00:00Z,red", "1,o2,5", "1,o3,5,2013-01-01,2013-01-01T00:00:00Z,red,extra"]
    lakehouse.deliver(1, "a.csv", header + "\n".join(lines) + "\n")
    report = lakehouse.run(ORDERS)
    assert (report.rows.read, report.rows.applied, report.rows.quarantined) == (3, 1, 2)
    assert lakehouse.rows(ORDERS, "order_id", "amount", "event_seq", "_rescued") == [("o1", 5, 1, '{"colour":"red"}')]
    assert sorted(row["record"] for row in lakehouse.quarantine(ORDERS)) == sorted(lines[1:])


CSV = ["order_id,amount,name", '1,5,"a ""b"", c"', '2,6,"two\nlines"', "3,7,Málaga"]
OF_CSV = {"order_id": {"type": "string"}, "amount": {"type": "int"}, "name": {"type": "string"}}
CSV_ROWS = [("1", 5, 'a "b", c'), ("2", 6, "two\nlines"), ("3", 7, "Málaga")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "content"),
    [
        ({}, "\n".join(CSV).encode("utf-8-sig")),
        ({"header": False}, "\n".join(CSV[1:]).encode()),
        ({"encoding": "ISO-8859-1"}, "\r\n".join(CSV).encode("latin-1")),
        ({"encoding": "UTF-16"}, "\n".join(CSV).encode("utf-16")),
        (
            {"delimiter": ";", "quote": "'", "escape": "\\"},
            "order_id;amount;name\n1;5;a \"b\", c\n2;6;'two\nlines'\n3;7;Málaga".encode(),
        ),
    ],
    ids=["doubled quotes and a byte order mark", "no header", "latin", "utf-16", "another dialect"],
)
def test_csv_values_are_read_as_their_writer_wrote_them(
    tmp_path: Path, server: SparkServer, source: dict[str, object], content: bytes
) -> None:
    lakehouse = Lakehouse(tmp_path)
    stated = {"landing": "orders", "files": "*.csv", "format": "csv", **source}
    lakehouse.specs(bronze_document(source=stated, columns=OF_CSV))
    lakehouse.deliver(1, "a.csv", content)
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount", "name") == CSV_ROWS
    assert report.rows.quarantined == 0


@pytest.mark.parametrize("ends", ["\r\n \n \n", "\n \r\n \n", "\r \n \r\n"], ids=repr)
def test_a_csv_file_whose_records_end_in_several_ways_is_read_record_by_record(lakehouse: Lakehouse, ends: str) -> None:
    stated = {"landing": "orders", "files": "*.csv", "format": "csv"}
    lakehouse.specs(bronze_document(source=stated, columns=OF_CSV))
    records = zip(("order_id,name,amount", "1,a,5", "2,b,6"), ends.split(" "), strict=True)
    lakehouse.deliver(1, "a.csv", "".join(record + end for record, end in records).encode())
    report = lakehouse.run(ORDERS)
    assert report.rows.quarantined == 0
    assert lakehouse.rows(ORDERS, "order_id", "amount", "name") == [("1", 5, "a"), ("2", 6, "b")]


def test_text_of_another_encoding_is_not_loaded_with_marks_in_its_place(tmp_path: Path, server: SparkServer) -> None:
    lakehouse = Lakehouse(tmp_path)
    lakehouse.specs(bronze_document(source={"landing": "orders", "format": "csv"}, columns=OF_CSV))
    lakehouse.deliver(1, "a.csv", "\n".join(CSV).encode("latin-1"))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "not UTF-8 text" in report.message
    lakehouse.deliver(1, "a.json", b'{"order_id": "o1"}\n{"order_id": "M\xe1laga"}\n')
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*.json", "format": "json"}, columns=OF_CSV))
    assert lakehouse.run(ORDERS).rows.quarantined == 1
    assert [(row["record"], row["reasons"]) for row in lakehouse.quarantine(ORDERS)] == [
        (
            "no text, in base64: eyJvcmRlcl9pZCI6ICJN4WxhZ2EifQ==",
            ["malformed record: its bytes are no UTF-8 text, and are shown in base64"],
        )
    ]


def test_a_strict_spec_leaves_out_each_file_with_a_value_that_fits_no_column(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(on_drift="fail"))
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 6, colour="red")])
    lakehouse.deliver(1, "b.json", [order(3, 7)])
    lakehouse.deliver(1, "c.json", [order(4, "many")])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert 'a.json: values that fit no column: {"colour":"red"}; declare them' in report.message
    assert 'c.json: values that fit no column: {"amount":"many"}' in report.message
    assert lakehouse.rows(ORDERS, "order_id", "_rescued") == [("o3", None)]


def test_the_report_of_sql_that_fails_for_a_row_begins_with_the_cause(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(expectations=[{"expect_sql": "1 / amount > 0", "action": "quarantine"}]))
    lakehouse.deliver(1, "a.json", [order(1, 0)])

    report = lakehouse.run(ORDERS)

    assert report.message.startswith(f"{ORDERS}: SparkException: [DIVIDE_BY_ZERO]")
    assert "1 / amount > 0" in report.message
    assert "\tat " not in report.message

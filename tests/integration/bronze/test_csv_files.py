"""CSV files: values as their writer wrote them, whatever the dialect, the packing, and the names of the columns."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
import zstandard

from millrace.errors import Outcome
from tests.support.lakehouse import Lakehouse
from tests.support.storage.landing_files import (
    FIELD_COLUMNS,
    FIELD_RECORDS,
    FIELDS,
    ORDERS,
    load_files,
    require_fields,
    rows_of_file,
)

SOURCE = {"landing": "orders", "files": "*.csv*", "format": "csv"}
COLUMNS = {"order_id": {}, "amount": {"type": "int"}, "label": {}}
CSV = ["order_id,amount,label", '1,5,"a ""b"", c"', '2,6,"two\nlines"', "3,7,Málaga"]
ROWS = [("1", 5, 'a "b", c'), ("2", 6, "two\nlines"), ("3", 7, "Málaga")]
MIXED_ENDS = {"crlf.csv": ("\r\n", "\n", "\n"), "lf.csv": ("\n", "\r\n", "\n"), "cr.csv": ("\r", "\n", "\r\n")}


def mixed(ends: tuple[str, ...]) -> bytes:
    records = ("order_id,label,amount", "1,a,5", "2,b,6")
    return "".join(record + end for record, end in zip(records, ends, strict=True)).encode()


def of_fields() -> bytes:
    header = ",".join('"' + field.replace('"', '""') + '"' for field in FIELDS)
    return "\n".join([header, *(",".join(str(value or "") for value in row) for row in FIELD_RECORDS)]).encode()


FILES = {
    "byte order mark.csv": "\n".join(CSV).encode("utf-8-sig"),
    "latin.csv": "\n".join(CSV).encode("latin-1"),
    "08:00.csv": b"order_id,amount\n1,5\n",
    "08:00.csv.gz": gzip.compress(b"order_id,amount\n2,6\n"),
    "a.csv.zst": zstandard.compress("\n".join(CSV).encode()),
    "values.csv": b"amount,order_id,colour\n5,o1,red\n5,o2\n5,o3,red,extra\n",
    "quotes.csv": b'order_id,label,amount\n"q1" ,"a"x, "5"\n"q2","a""b"\t,"6" \n',
    "fields.csv": of_fields(),
    **{name: mixed(ends) for name, ends in MIXED_ENDS.items()},
}


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    """All these files after one run."""
    load_files(shared, FILES, source=SOURCE, columns={**COLUMNS, **FIELD_COLUMNS})
    return shared


def test_values_are_read_as_their_writer_wrote_them(loaded: Lakehouse) -> None:
    for name in ("byte order mark.csv", "a.csv.zst"):
        assert rows_of_file(loaded, name, *COLUMNS) == ROWS
    assert rows_of_file(loaded, ["08:00.csv", "08:00.csv.gz"], "order_id", "amount") == [("1", 5), ("2", 6)]


def test_text_of_another_encoding_is_not_loaded_with_marks_in_its_place(loaded: Lakehouse) -> None:
    assert loaded.reports[-1].outcome is Outcome.BAD_INPUT
    assert "1 of 11 files cannot be loaded" in loaded.reports[-1].message
    assert "latin.csv: not UTF-8 text" in loaded.reports[-1].message


@pytest.mark.parametrize("name", MIXED_ENDS)
def test_a_file_whose_records_end_in_several_ways_is_read_record_by_record(loaded: Lakehouse, name: str) -> None:
    assert rows_of_file(loaded, name, *COLUMNS) == [("1", 5, "a"), ("2", 6, "b")]


def test_rows_with_too_few_or_too_many_values_are_quarantined(loaded: Lakehouse) -> None:
    assert rows_of_file(loaded, "values.csv", "order_id", "amount", "_rescued") == [("o1", 5, '{"colour":"red"}')]
    assert sorted(row["record"] for row in loaded.quarantine(ORDERS)) == ["5,o2", "5,o3,red,extra"]
    assert loaded.reports[-1].rows.quarantined == 2


def test_blanks_after_a_quoted_value_are_none_of_it_and_other_text_makes_it_no_quoted_one(loaded: Lakehouse) -> None:
    rows = rows_of_file(loaded, "quotes.csv", *COLUMNS, "_rescued")
    assert rows == [("q1", None, '"a"x', '{"amount":" \\"5\\""}'), ("q2", 6, 'a"b', None)]


def test_values_are_in_the_columns_that_name_their_fields(loaded: Lakehouse) -> None:
    require_fields(loaded, "fields.csv")


@pytest.mark.parametrize(
    ("source", "content"),
    [
        pytest.param({"encoding": "UTF-16"}, "\r\n".join(CSV).encode("utf-16"), marks=pytest.mark.slow),
        (
            {"header": False, "encoding": "ISO-8859-1", "delimiter": ";", "quote": "'", "escape": "\\"},
            "1;5;a \"b\", c\n2;6;'two\nlines'\n3;7;Málaga".encode("latin-1"),
        ),
    ],
    ids=["utf-16", "another dialect"],
)
def test_the_spec_says_how_the_writer_wrote(lakehouse: Lakehouse, source: dict[str, Any], content: bytes) -> None:
    report = load_files(lakehouse, {"a.csv": content}, source={**SOURCE, **source}, columns=COLUMNS)
    assert (report.outcome, report.rows.quarantined) == (Outcome.COMMITTED, 0), report.message
    assert lakehouse.rows(ORDERS, *COLUMNS) == ROWS


def test_files_whose_names_differ_in_case_load_together_and_their_new_columns_too(lakehouse: Lakehouse) -> None:
    columns = {"order_id": {"from": "ORDER_No", "required": True}, "amount": {"type": "int"}}
    files = {
        "a.csv": b"ORDER_NO,Amount,Colour,order_id\no1,2,x,y\n",
        "b.csv": b"colour,amount,order_no\nred,3,o2\n",
        "c.csv": b"Order_No\no3\n",
        "d.csv": b"order_no,ORDER_NO\n1,2\n",
        "e.csv": b"Amount\n1\n",
    }
    source = {**SOURCE, "field_names": "any_case"}
    report = load_files(lakehouse, files, source=source, columns=columns, on_drift="evolve")
    assert report.outcome is Outcome.BAD_INPUT
    assert "d.csv: the column order_id could read order_no and ORDER_NO" in report.message
    assert "e.csv: has no column ORDER_No; its columns are Amount" in report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount", "colour", "_rescued") == [
        ("o1", 2, "x", '{"order_id":"y"}'), ("o2", 3, "red", None), ("o3", None, None, None)
    ]  # fmt: skip
    assert "c.csv has no column amount: null in its row" in " ".join(report.notes)

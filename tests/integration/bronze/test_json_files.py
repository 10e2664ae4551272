"""JSON files of every form and packing in one run: each value is stored, rescued or quarantined, broken files named."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime

import pytest
import zstandard

from millrace.contracts.job.report import FileRows
from millrace.control.landing.file_states import file_states
from millrace.control.ledger.ledger import Ledger
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.storage.landing_files import (
    DAY,
    FIELD_COLUMNS,
    FIELD_RECORDS,
    FIELDS,
    ORDERS,
    PART_COLUMNS,
    PART_RECORDS,
    json_of,
    load_files,
    require_fields,
    require_parts,
    rows_of_file,
)

SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00pzst"
NESTED_COLUMNS = {
    "guest": {"type": "struct<name: string, at: timestamp>", "from": "The Guest"},
    "tags": {"type": "array<string>"},
    "counts": {"type": "map<string, int>"},
}
COLUMNS = {
    "order_id": {},
    "amount": {"type": "int"},
    "day": {"type": "date"},
    **FIELD_COLUMNS,
    **PART_COLUMNS,
    **NESTED_COLUMNS,
}
PRETTY = b'[\n {\n  "order_id": "o1",\n  "amount": 1,\n  "remark": 1.10000000000000000000001\n },\n 5,\n null\n]\n'
ANN = {"name": "Ann", "at": "2013-01-01T08:00:00Z"}
NESTED = [
    {"order_id": "o1", "The Guest": ANN, "tags": ["a", None], "counts": {"apples": "3", "a.b": 1}},
    {"order_id": "o2", "The Guest": {**ANN, "vip": True}, "tags": "a", "counts": {"apples": "several"}},
    {"order_id": "o3", "The Guest": {}, "tags": [], "counts": None},
]


def lines(first: int, count: int) -> bytes:
    return json_of({"order_id": f"o{number}", "amount": number} for number in range(first, first + count))


def long_lines() -> bytes:
    """More than the window of a plain zstd file; blank lines are no records."""
    content = b"".join(lines(number, 1) + b" " * 10_000 + b"\n" for number in range(900))
    assert len(content) > 1 << 23
    return content


def windowed(content: bytes) -> bytes:
    """A frame whose window is larger than the content's first half, as `zstd --long` writes it."""
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return frame.compress(content) + frame.flush()


def files() -> dict[str, bytes]:
    many = zstandard.compress(long_lines())
    return {
        "many.json.zst": many,
        "frames.jsonl.zst": SKIPPABLE + zstandard.compress(lines(0, 5)) + SKIPPABLE + zstandard.compress(lines(5, 5)),
        "long.json.zst": windowed(lines(10, 10)),
        "beside.json.gz": gzip.compress(lines(20, 10)),
        "08:00.json": PRETTY,
        "08:00.json.zst": zstandard.compress(b'[{"order_id": "o2", "amount": 2},{"order_id": "[{o3]"}]'),
        "empty.json.gz": gzip.compress(b"[]"),
        "values.json": b"\n".join([
            b'{"order_id": "o1", "amount": 5, "day": "2013-01-01"}', b"{broken", b"",
            b'{"order_id": "o2", "amount": "many", "day": "2013-13-45", "colour": "red"}', b"not json either",
            b'{"order_id": "M\xe1laga"}', b"",
        ]),
        "fields.json": json_of(
            {field: value for field, value in zip(FIELDS, record, strict=True) if value} for record in FIELD_RECORDS
        ),
        "parts.json": json_of(PART_RECORDS),
        "nested.json": json_of(NESTED),
        "cut.json": PRETTY[:-3],
        "cut.json.zst": many[:-100],
        "half.json": b'[{"order_id": "o5"} {"order_id": "o6"}]',
        "is_parquet.json": b"PAR1 and then some PAR1",
        "large.json.gz": gzip.compress(lines(30, 1) + json_of([{"order_id": "x" * 30_000}])),
    }  # fmt: skip


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    """All these files after one run."""
    limits = {"record": "20 KiB", "expansion": 10_000}
    source = {"landing": "orders", "files": "*", "format": "json", "limits": limits}
    load_files(shared, files(), source=source, columns=COLUMNS)
    return shared


def test_broken_files_fail_the_run_after_all_others_are_loaded(loaded: Lakehouse) -> None:
    report = loaded.reports[-1]
    assert (report.outcome, report.exit_code) == (Outcome.BAD_INPUT, ExitCode.BAD_INPUT)
    first, *others = report.message.splitlines()
    assert first.startswith("bronze.orders: 5 of 16 files cannot be loaded, the others are loaded")
    for defect in (
        "cut.json: not a sound JSON array (element 3: the file ends within",
        "half.json: not a sound JSON array (element 1: then comes '{'",
        "cut.json.zst: truncated zstd",
        "is_parquet.json holds neither JSON lines nor an array",
        "large.json.gz: it has a record of more than 20.0 KiB, and source.limits.record is 20.0 KiB; correct the file",
    ):
        assert sum(defect in line for line in others) == 1, report.message


def test_packed_files_are_unpacked_whoever_wrote_them(loaded: Lakehouse) -> None:
    assert {key for (key,) in rows_of_file(loaded, "many.json.zst", "order_id")} == {f"o{n}" for n in range(900)}
    packed = rows_of_file(loaded, ["frames.jsonl.zst", "long.json.zst", "beside.json.gz"], "order_id", "amount")
    assert sorted(packed, key=lambda row: row[1]) == [(f"o{number}", number) for number in range(30)]


def test_arrays_and_lines_in_the_same_folder_follow_the_same_rules(loaded: Lakehouse) -> None:
    assert rows_of_file(loaded, ["08:00.json", "08:00.json.zst"], "order_id", "amount", "_rescued") == [
        ("[{o3]", None, None), ("o1", 1, '{"remark":"1.10000000000000000000001"}'), ("o2", 2, None)
    ]  # fmt: skip
    assert refused(loaded, "08:00.json") == [(2, "5")], "a null has no values"
    [dropped] = [each for each in loaded.reports[-1].findings.refused if each.action == "drop"]
    assert (dropped.reason, dropped.rows) == ("null record: it has no values, as a tombstone", 1)


def test_an_unparsable_line_is_quarantined_and_an_invalid_value_is_rescued(loaded: Lakehouse) -> None:
    assert rows_of_file(loaded, "values.json", "order_id", "amount", "day", "_rescued") == [
        ("o1", 5, date(2013, 1, 1), None),
        ("o2", None, None, '{"amount":"many","day":"2013-13-45","colour":"red"}'),
    ]
    no_text = "no text, in base64: eyJvcmRlcl9pZCI6ICJN4WxhZ2EifQ=="
    assert refused(loaded, "values.json") == [(2, "{broken"), (4, "not json either"), (5, no_text)]
    reasons = {row["record"]: row["reasons"] for row in loaded.quarantine(ORDERS)}
    assert reasons["{broken"] == ["malformed record: it cannot be parsed as json"]
    assert reasons[no_text] == ["malformed record: its bytes are no UTF-8 text, and are shown in base64"]


def test_the_report_and_the_ledger_count_what_was_rescued_and_quarantined(loaded: Lakehouse) -> None:
    report = loaded.reports[-1]
    assert (report.rows.read - report.rows.applied, report.rows.quarantined, report.rows.dropped) == (5, 4, 1)
    states = file_states(Ledger(loaded.paths), ORDERS, report.table_id)
    assert next(file.rows for file in states if file.path == f"{DAY}/values.json") == FileRows(
        read=5, written=2, rescued=1, quarantined=3
    )
    found = {(one.field, one.type, one.rows, one.samples) for one in report.findings.rescued}
    assert found >= {
        ("amount", "int", 1, ("many",)),
        ("colour", "", 1, ("red",)),
        ("day", "date or midnight in UTC", 1, ("2013-13-45",)),
    }
    assert "bronze.orders: 1 row has a value of amount that is no int: null there, kept in _rescued: 'many'" in (
        report.notes
    )


def test_values_are_in_the_columns_that_name_their_fields(loaded: Lakehouse) -> None:
    require_fields(loaded, "fields.json")


def test_columns_read_parts_of_fields(loaded: Lakehouse) -> None:
    require_parts(loaded, "parts.json")


def test_nested_values_are_stored_by_their_type(loaded: Lakehouse) -> None:
    moment = datetime(2013, 1, 1, 8, tzinfo=UTC)
    first, second, third = rows_of_file(loaded, "nested.json", "order_id", *NESTED_COLUMNS, "_rescued")
    assert first[1:4] == ({"name": "Ann", "at": moment}, ["a", None], [("apples", 3), ("a.b", 1)])
    assert second[1:4] == ({"name": "Ann", "at": moment}, None, [("apples", None)])
    assert json.loads(second[4]) == {"The Guest.vip": "true", "tags": "a", "counts.apples": "several"}
    assert third[1:] == ({"name": None, "at": None}, [], None, None)
    notes = "\n".join(loaded.reports[-1].notes)
    assert "1 row has a value of tags that is no array<string>: null there, kept in _rescued: 'a'" in notes
    assert "1 row has a value of counts[] that is no int, or not the last of its name: not stored" in notes
    assert "rows have fields that no column is declared for, kept in _rescued: 'The Guest.vip' in 1" in notes


def test_a_strict_spec_leaves_out_each_file_with_a_value_that_fits_no_column(lakehouse: Lakehouse) -> None:
    columns = {"order_id": {"from": "Order ID"}, "amount": {"type": "int"}}
    files = {
        "a.json": b'[{"Order ID": "o1"}, {"Order ID": "o2", "order_id": "o2"}]',
        "b.json": b'{"Order ID": "o3", "amount": "many"}\n',
        "c.json": b'{"Order ID": "o4", "amount": 5}\n',
    }
    report = load_files(lakehouse, files, on_drift="fail", columns=columns)
    assert report.outcome is Outcome.BAD_INPUT
    assert 'a.json: values that fit no column: {"order_id":"o2"}; declare them' in report.message
    assert 'b.json: values that fit no column: {"amount":"many"}' in report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount", "_rescued") == [("o4", 5, None)]


def test_the_report_of_sql_that_fails_for_a_row_begins_with_the_cause(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(expectations=[{"expect_sql": "1 / amount > 0", "action": "quarantine"}]))
    lakehouse.deliver(1, "a.json", [order(1, 0)])

    report = lakehouse.run(ORDERS)

    assert report.message.startswith(f"{ORDERS}: SparkException: [DIVIDE_BY_ZERO]")
    assert "1 / amount > 0" in report.message
    assert "\tat " not in report.message


def refused(shop: Lakehouse, file: str) -> list[tuple[int, str]]:
    """Return (number of the record, record) of what is in quarantine of a file."""
    rows = (row for row in shop.quarantine(ORDERS) if row["source"] == f"{DAY}/{file}")
    return sorted((row["position"], row["record"]) for row in rows)

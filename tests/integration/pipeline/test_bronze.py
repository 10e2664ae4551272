"""Bronze on real Delta: every file once, what does not fit kept apart, and one broken file never blocks another."""

from __future__ import annotations

import gzip
import os
from datetime import date
from pathlib import Path
from typing import NoReturn

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from include.contracts.job_report import FileRows
from include.control.file_states import file_states
from include.control.ledger import Ledger
from include.errors import ExitCode, Outcome
from spark_jobs.delta_io.batches import BatchResult, BatchWork
from spark_jobs.jobs import bronze_ingest
from spark_jobs.runtime.context import JobContext
from tests.support.lakehouse import Lakehouse, order
from tests.support.specs import bronze_document, silver_document

ORDERS = "bronze.orders"


class Died(BaseException):
    """The driver ended here."""


def die(*_: object) -> NoReturn:
    raise Died


def test_a_file_is_loaded_once_however_often_the_interval_runs(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 7)])
    first, again = lakehouse.run(ORDERS), lakehouse.run(ORDERS)
    assert (first.outcome, first.rows.read, first.rows.applied, first.table_rows) == (Outcome.COMMITTED, 2, 2, 2)
    assert (again.outcome, again.batch_seq, again.version) == (Outcome.NO_OP, first.batch_seq, first.version)
    lakehouse.deliver(1, "b.json", [order(3, 9)])
    late = lakehouse.run(ORDERS)
    assert (late.rows.read, late.table_rows) == (1, 3)
    assert lakehouse.rows(ORDERS, "order_id", "amount", "_source_file", "_batch_seq") == [
        ("o1", 5, "orders/date=2013-01-01/a.json", 1),
        ("o2", 7, "orders/date=2013-01-01/a.json", 1),
        ("o3", 9, "orders/date=2013-01-01/b.json", 2),
    ]


def test_the_table_needs_no_newer_reader_and_the_ledger_counts_each_file(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 7)])
    lakehouse.deliver(1, "b.json", "")
    report = lakehouse.run(ORDERS)
    table = DeltaTable(str(lakehouse.paths.table(ORDERS)))
    assert table.protocol().min_reader_version == 1
    events = Ledger(lakehouse.paths)._files.events(ORDERS, event="loaded")
    assert {row["path"].rpartition("/")[2]: row["rows_written"] for row in events} == {"a.json": 2, "b.json": 0}
    assert report.certified_version == report.version


def test_what_does_not_parse_is_quarantined_with_its_line_and_what_does_not_fit_is_rescued(
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
    found = sorted((row["position"], row["record"], row["reasons"]) for row in lakehouse.quarantine(ORDERS))
    assert [(position, record) for position, record, _ in found] == [(2, "{broken"), (4, "not json either")]
    assert all(reasons == ["malformed record: it cannot be parsed as json"] for _, _, reasons in found)


def test_the_ledger_tells_the_fate_of_every_record_of_every_file(lakehouse: Lakehouse) -> None:
    is_paid = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "drop"}
    lakehouse.specs(bronze_document(expectations=[is_paid], partitioned_by=["day"]))
    lakehouse.deliver(
        1, "a b+c.json", [order(1, 5), order(2, -1), order(3, 6, of_day=2), order(4, "many", colour="red")]
    )
    lakehouse.deliver(1, "b.json", [order(5, -2), order(6, -3)])
    report = lakehouse.run(ORDERS)

    files = {
        file.path.rpartition("/")[2]: file.rows
        for file in file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    }
    assert files == {
        "a b+c.json": FileRows(read=4, written=3, rescued=1, dropped=1),
        "b.json": FileRows(read=2, dropped=2),
    }
    assert (report.rows.read, report.rows.applied, report.rows.dropped) == (6, 3, 3)


def test_broken_files_fail_the_run_after_all_others_are_loaded(lakehouse: Lakehouse) -> None:
    whole = gzip.compress("".join(f'{{"order_id": "o{i}"}}\n' for i in range(500)).encode())
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*", "format": "json"}))
    lakehouse.deliver(1, "good.json.gz", whole)
    lakehouse.deliver(1, "cut.json.gz", whole[: len(whole) // 2])
    lakehouse.deliver(1, "is_parquet.json", b"PAR1 and then some PAR1")
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.exit_code) == (Outcome.BAD_INPUT, ExitCode.BAD_INPUT)
    first_line, *others = report.message.splitlines()
    assert first_line.startswith("bronze.orders: 2 of 3 files cannot be loaded, the others are.")
    assert any("cut.json.gz: truncated gzip" in line for line in others)
    assert len(lakehouse.rows(ORDERS, "order_id")) == 500
    lakehouse.deliver(1, "cut.json.gz", gzip.compress(b'{"order_id": "again"}\n'))
    (lakehouse.folder / "landing/orders/date=2013-01-01/is_parquet.json").unlink()
    assert lakehouse.run(ORDERS).outcome == Outcome.COMMITTED
    assert len(lakehouse.rows(ORDERS, "order_id")) == 501


def test_a_broken_file_fails_as_many_runs_as_the_spec_allows_and_then_no_more(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "path": ".", "format": "json", "max_files_per_batch": 1, "max_attempts_per_file": 2}
    lakehouse.specs(bronze_document(source=source))
    for name in ("a.json", "c.json"):
        lakehouse.deliver(1, name, [order(1, 5)])
    lakehouse.deliver(1, "b.json", "PAR1")
    first, second, third = (lakehouse.run(ORDERS) for _ in range(3))
    assert [run.outcome for run in (first, second)] == [Outcome.BAD_INPUT, Outcome.BAD_INPUT]
    assert ("(attempt 1 of 2)" in first.message, "(attempt 2 of 2)" in second.message) == (True, True)
    assert (third.outcome, third.error_class) == (Outcome.NO_OP, "")
    assert "b.json was given up after 2 attempts" in third.notes[0]
    (state,) = file_states(Ledger(lakehouse.paths), ORDERS, first.table_id)[1:2]
    assert (state.status, state.tries) == ("failed", 2)
    lakehouse.deliver(1, "b.json", [order(2, 5)])
    assert lakehouse.run(ORDERS).table_rows == 3


def test_a_parquet_file_that_breaks_only_when_read_is_blamed_and_the_others_load(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*.parquet", "format": "parquet"}))
    columns = {
        "order_id": [f"o{i}" for i in range(5000)],
        "amount": list(range(5000)),
        "day": [date(2013, 1, 1)] * 5000,
    }
    table = pa.table({**columns, "event_at": ["2013-01-01T00:00:00Z"] * 5000, "event_seq": [1] * 5000})
    for name in ("good.parquet", "bad.parquet"):
        pq.write_table(table, lakehouse.deliver(1, name, b""))
    bad = lakehouse.folder / "landing/orders/date=2013-01-01/bad.parquet"
    content = bytearray(bad.read_bytes())
    content[100:2000] = b"\0" * 1900
    bad.write_bytes(bytes(content))
    report = lakehouse.run(ORDERS)
    assert report.outcome == Outcome.BAD_INPUT
    assert "bad.parquet: Spark cannot read it" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 5000


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
    tmp_path: Path, spark: SparkSession, source: dict[str, object], content: bytes
) -> None:
    lakehouse = Lakehouse(tmp_path)
    stated = {"landing": "orders", "files": "*.csv", "format": "csv", **source}
    lakehouse.specs(bronze_document(source=stated, columns=OF_CSV))
    lakehouse.deliver(1, "a.csv", content)
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount", "name") == CSV_ROWS
    assert report.rows.quarantined == 0


def test_text_of_another_encoding_is_not_loaded_with_marks_in_its_place(tmp_path: Path, spark: SparkSession) -> None:
    lakehouse = Lakehouse(tmp_path)
    lakehouse.specs(bronze_document(source={"landing": "orders", "format": "csv"}, columns=OF_CSV))
    lakehouse.deliver(1, "a.csv", "\n".join(CSV).encode("latin-1"))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "not UTF-8 text" in report.message
    lakehouse.deliver(1, "a.json", b'{"order_id": "o1"}\n{"order_id": "M\xe1laga"}\n')
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*.json", "format": "json"}, columns=OF_CSV))
    assert lakehouse.run(ORDERS).rows.quarantined == 1
    assert [row["record"] for row in lakehouse.quarantine(ORDERS)] == ["eyJvcmRlcl9pZCI6ICJN4WxhZ2EifQ=="]


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


def test_a_large_delivery_is_loaded_in_bounded_batches_and_one_report_counts_them_all(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*.json", "format": "json", "max_files_per_batch": 2}
    lakehouse.specs(bronze_document(source=source))
    for number in range(5):
        lakehouse.deliver(1, f"{number}.json", [order(number, number)])
    lakehouse.deliver(1, "2 is broken.json", "PAR1")
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.batch_seq, report.certified_version) == (Outcome.BAD_INPUT, 3, report.version)
    assert (report.rows.read, report.rows.applied, report.table_rows) == (5, 5, 5)
    files = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    assert [(file.path.rpartition("/")[2], file.batch_seq) for file in files] == [
        ("0.json", 1), ("1.json", 1), ("2 is broken.json", None), ("2.json", 2), ("3.json", 2), ("4.json", 3)
    ]  # fmt: skip


def test_a_run_that_dies_between_two_batches_goes_on_where_it_was(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = {"landing": "orders", "files": "*.json", "format": "json", "max_files_per_batch": 1}
    lakehouse.specs(bronze_document(source=source))
    for number in range(3):
        lakehouse.deliver(1, f"{number}.json", [order(number, number)])
    in_one_batch = bronze_ingest.commit_batch

    def die_after_one(context: JobContext, work: BatchWork) -> BatchResult:
        monkeypatch.setattr(bronze_ingest, "commit_batch", die)
        return in_one_batch(context, work)

    monkeypatch.setattr(bronze_ingest, "commit_batch", die_after_one)
    with pytest.raises(Died):
        lakehouse.run(ORDERS)
    monkeypatch.setattr(bronze_ingest, "commit_batch", in_one_batch)
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.rows.read, report.batch_seq) == (Outcome.COMMITTED, 2, 3)
    assert (report.version, report.certified_version) == (3, 3)
    assert lakehouse.rows(ORDERS, "order_id", "_batch_seq") == [("o0", 1), ("o1", 2), ("o2", 3)]


def test_a_file_that_is_still_being_written_is_waited_for_and_the_others_load(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*.json", "format": "json", "min_age": "1 hours"}
    lakehouse.specs(bronze_document(source=source))
    os.utime(lakehouse.deliver(1, "a.json", [order(1, 5)]), (0, 0))
    young = lakehouse.deliver(1, "b.json", [order(2, 7)])
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert report.message.startswith("bronze.orders: 1 of 2 files are still being written, the others are loaded.")
    assert (report.rows.read, report.certified_version) == (1, report.version)
    os.utime(young, (0, 0))
    assert lakehouse.run(ORDERS).outcome == Outcome.COMMITTED
    assert len(lakehouse.rows(ORDERS, "order_id")) == 2


def test_a_missing_folder_is_not_ready_and_starts_nothing(lakehouse: Lakehouse) -> None:
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert "has not delivered yet" in report.message
    assert not lakehouse.paths.table(ORDERS).exists()


def test_other_content_under_a_loaded_name_is_refused(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    lakehouse.run(ORDERS)
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 6)])
    report = lakehouse.run(ORDERS)
    assert report.outcome == Outcome.BAD_INPUT
    assert "was loaded before with other content" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 1


def test_a_table_on_disk_that_the_spec_does_not_fit_is_left_alone(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    lakehouse.run(ORDERS)
    columns = {"order_id": {"type": "bigint"}, "colour": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver_document(columns=columns, keys=["colour"], sequence_by=[]))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()
    lakehouse.deliver(1, "b.json", [order(2, 6)])
    report = lakehouse.run(ORDERS)
    assert report.outcome == Outcome.BAD_INPUT
    assert "order_id is string in the table and long in the spec" in report.message
    assert "the spec has colour (string), the table does not" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 1


@pytest.mark.parametrize("left", [(), (".00000000000000000000.json.1.tmp",)])
def test_a_table_whose_creator_died_is_created_by_the_next_driver(lakehouse: Lakehouse, left: tuple[str, ...]) -> None:
    log = lakehouse.paths.table(ORDERS) / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).touch()
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    assert lakehouse.run(ORDERS).table_rows == 1


def test_a_folder_that_holds_something_else_is_left_alone_and_named(lakehouse: Lakehouse) -> None:
    folder = lakehouse.paths.table(ORDERS)
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message.startswith(f"The folder {folder} is to become a table, but holds something else: notes.txt")
    assert (folder / "notes.txt").read_text() == "mine"

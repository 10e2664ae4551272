"""Bronze on real Delta: every file once, in bounded batches; unfinished files wait, changed files are refused."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest
from deltalake import DeltaTable

from include.contracts.job.report import FileRows
from include.control.landing.file_states import file_states
from include.control.ledger.ledger import Ledger
from include.errors import ExitCode, Outcome
from spark_jobs.jobs import bronze_ingest
from spark_jobs.protocol.batches import BatchResult, BatchWork
from spark_jobs.runtime.context import JobContext
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order

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


def test_a_name_that_looks_like_a_glob_or_a_url_is_the_name_of_one_file(lakehouse: Lakehouse) -> None:
    names = (
        "a*.json", "ab.json", "a[b].json", "a{b,c}.json", "a?.json", "a\\b%2B.json",
        "08:00.json", ":.json", "file:a.json", "a:*.json", "08:00/a:b.json",
    )  # fmt: skip
    for number, name in enumerate(names):
        lakehouse.deliver(1, name, [order(number, 1)])
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.rows.read) == (Outcome.COMMITTED, len(names)), report.message
    rows = lakehouse.rows(ORDERS, "order_id", "_source_file")
    assert {key: path.removeprefix("orders/date=2013-01-01/") for key, path in rows} == {
        f"o{number}": name for number, name in enumerate(names)
    }


def test_files_in_the_landing_root_itself_are_counted_by_their_names(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(source={"landing": ".", "path": ".", "files": "*.json", "format": "json"}))
    lakehouse.deliver(1, "a.json", [order(1, 5)]).rename(lakehouse.folder / "landing" / "a.json")
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.rows.read) == (Outcome.COMMITTED, 1), report.message
    (file,) = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    assert (file.path, file.rows and file.rows.written) == ("a.json", 1)
    assert lakehouse.rows(ORDERS, "_source_file") == [("a.json",)]


def test_the_table_needs_no_newer_reader_and_the_ledger_counts_each_file(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 7)])
    lakehouse.deliver(1, "b.json", "")
    report = lakehouse.run(ORDERS)
    table = DeltaTable(str(lakehouse.paths.table(ORDERS)))
    assert table.protocol().min_reader_version == 1
    events = Ledger(lakehouse.paths)._files.events(ORDERS, event="loaded")
    assert {row["path"].rpartition("/")[2]: row["rows_written"] for row in events} == {"a.json": 2, "b.json": 0}
    assert report.certified_version == report.version


def test_the_ledger_counts_every_record_of_every_file(lakehouse: Lakehouse) -> None:
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


def test_the_next_run_continues_after_a_run_that_died_between_two_batches(
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


def test_an_unfinished_file_is_waited_for_and_the_other_files_load(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*.json", "format": "json", "min_age": "1 hours"}
    lakehouse.specs(bronze_document(source=source))
    os.utime(lakehouse.deliver(1, "a.json", [order(1, 5)]), (0, 0))
    young = lakehouse.deliver(1, "b.json", [order(2, 7)])
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert report.message.startswith("bronze.orders: 1 of 2 files are still being written, the others are loaded")
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

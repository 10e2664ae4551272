"""Bronze on real Delta: every file once, in bounded batches, whatever the driver and the clock go through."""

from __future__ import annotations

import json
import os
from typing import NoReturn

import pytest
import time_machine
from deltalake import DeltaTable

from millrace.contracts.job.report import FileRows
from millrace.control.landing.file_states import file_states
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.ledger import Ledger
from millrace.errors import ExitCode, Outcome
from millrace_spark.jobs import bronze_ingest
from millrace_spark.protocol.batches import BatchResult, BatchWork
from millrace_spark.runtime.context import JobContext
from tests.support.documents.specs import bronze_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"
ODD_NAMES = (
    "a*.json", "ab.json", "a[b].json", "a{b,c}.json", "a?.json", "a\\b%2B.json", "a b+c.json",
    "08:00.json", ":.json", "file:a.json", "a:*.json", "08:00/a:b.json",
)  # fmt: skip
"""Names that look like globs or URLs; some of these globs match other files."""


class Died(BaseException):
    """The driver ended here."""


def die(*_: object) -> NoReturn:
    raise Died


def test_a_file_is_loaded_once_however_often_the_interval_runs(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 7)])
    first, again = lakehouse.run(ORDERS), lakehouse.run(ORDERS)
    assert (first.outcome, first.rows.read, first.rows.applied, first.table_rows) == (Outcome.COMMITTED, 2, 2, 2)
    assert first.certified_version == first.version
    assert (again.outcome, again.batch_seq, again.version) == (Outcome.NO_OP, first.batch_seq, first.version)
    lakehouse.deliver(1, "a.json", [order(1, 5), order(2, 6)])
    refused = lakehouse.run(ORDERS)
    assert refused.outcome == Outcome.BAD_INPUT
    assert "was loaded before with other content" in refused.message
    assert lakehouse.rows(ORDERS, "order_id", "amount", "_source_file", "_batch_seq") == [
        ("o1", 5, "orders/date=2013-01-01/a.json", 1),
        ("o2", 7, "orders/date=2013-01-01/a.json", 1),
    ]
    assert DeltaTable(str(lakehouse.paths.table(ORDERS))).protocol().min_reader_version == 1


def test_the_ledger_counts_every_record_of_every_file_whatever_its_name(lakehouse: Lakehouse) -> None:
    is_paid = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "drop"}
    lakehouse.specs(bronze_document(expectations=[is_paid], partitioned_by=["day"]))
    for number, name in enumerate(ODD_NAMES):
        lakehouse.deliver(1, name, [order(number, 1), order(number, -1), order(number, "many", of_day=2)])
    lakehouse.deliver(1, "empty.json", "")
    lakehouse.deliver(1, "refused.json", [order(5, -2), order(6, -3)])

    report = lakehouse.run(ORDERS)

    count, folder = len(ODD_NAMES), "orders/date=2013-01-01/"
    states = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    assert {file.path.removeprefix(folder): file.rows for file in states} == {
        **dict.fromkeys(ODD_NAMES, FileRows(read=3, written=2, rescued=1, dropped=1)),
        "empty.json": FileRows(),
        "refused.json": FileRows(read=2, dropped=2),
    }
    assert (report.rows.read, report.rows.applied, report.rows.dropped) == (3 * count + 2, 2 * count, count + 2)
    assert f"1 file has 0 bytes, and brought no row: {folder}empty.json" in report.notes
    assert dict(lakehouse.rows(ORDERS, "order_id", "_source_file")) == {
        f"o{number}": folder + name for number, name in enumerate(ODD_NAMES)
    }


def test_a_large_delivery_is_loaded_in_bounded_batches_and_a_broken_file_fails_as_many_runs_as_the_spec_allows(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"max_files_per_batch": 2, "max_attempts_per_file": 2}
    lakehouse.specs(
        bronze_document(source={"landing": ".", "path": ".", "files": "*.json", "format": "json", **limits})
    )
    landing = lakehouse.folder / "landing"
    landing.mkdir()
    for number in range(5):
        (landing / f"{number}.json").write_text(json.dumps(order(number, number)))
    (landing / "2 is broken.json").write_text("PAR1")
    in_one_batch = bronze_ingest.commit_batch

    def die_after_one(context: JobContext, work: BatchWork) -> BatchResult:
        monkeypatch.setattr(bronze_ingest, "commit_batch", die)
        return in_one_batch(context, work)

    monkeypatch.setattr(bronze_ingest, "commit_batch", die_after_one)
    with pytest.raises(Died):
        lakehouse.run(ORDERS)
    monkeypatch.setattr(bronze_ingest, "commit_batch", in_one_batch)
    first, second, third = (lakehouse.run(ORDERS) for _ in range(3))

    assert (first.outcome, first.batch_seq, first.certified_version) == (Outcome.BAD_INPUT, 3, first.version)
    assert (first.rows.read, first.rows.applied, first.table_rows) == (3, 3, 5)
    assert "(attempt 1 of 2)" in first.message
    assert (second.outcome, "(attempt 2 of 2)" in second.message) == (Outcome.BAD_INPUT, True)
    assert (third.outcome, third.error_class) == (Outcome.NO_OP, "")
    assert "2 is broken.json was given up after 2 attempts" in third.notes[0]
    files = file_states(Ledger(lakehouse.paths), ORDERS, first.table_id)
    assert [(file.path, file.batch_seq, file.rows and file.rows.written) for file in files if file.batch_seq] == [
        ("0.json", 1, 1), ("1.json", 1, 1), ("2.json", 2, 1), ("3.json", 2, 1), ("4.json", 3, 1)
    ]  # fmt: skip
    assert [(file.path, file.status, file.tries) for file in files if not file.batch_seq] == [
        ("2 is broken.json", "failed", 2)
    ]
    assert lakehouse.rows(ORDERS, "order_id", "_source_file") == [
        (f"o{number}", f"{number}.json") for number in range(5)
    ]


def test_a_delivery_is_waited_for_until_each_file_is_there_can_be_read_and_is_complete(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LocalLanding, "name_defect", lambda *_: "")  # for a link that stands for a file
    missing = lakehouse.run(ORDERS)
    assert (missing.outcome, missing.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert "has not delivered yet" in missing.message
    assert not lakehouse.paths.table(ORDERS).exists()
    file = lakehouse.deliver(1, "a.json", [order(1, 5)])
    stuck = file.with_name("b.json")
    stuck.symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO

    report = lakehouse.run(ORDERS)

    assert (report.outcome, report.rows.read, report.certified_version) == (Outcome.NOT_READY, 1, report.version)
    assert report.message.startswith("bronze.orders: 1 of 2 files could not be read")
    ledger, table_id = Ledger(lakehouse.paths), report.table_id
    assert [state.status for state in file_states(ledger, ORDERS, table_id)] == ["loaded", "unreachable"]
    assert "Input/output error" in file_states(ledger, ORDERS, table_id)[1].reason
    stuck.unlink()
    young = lakehouse.deliver(1, "b.json", [order(2, 5)])
    os.utime(file, ns=(1, 1))
    lakehouse.specs(bronze_document(source={**bronze_document()["source"], "min_age": "1 hours"}))
    early = lakehouse.run(ORDERS)
    assert (early.outcome, early.exit_code) == (Outcome.NOT_READY, ExitCode.NOT_READY)
    assert early.message.startswith("bronze.orders: 1 of 2 files are still being written, the others are loaded")
    os.utime(young, (0, 0))
    late = lakehouse.run(ORDERS)
    assert (late.rows.read, late.table_rows, late.batch_seq) == (1, 2, 2)
    assert [(state.status, state.reason) for state in file_states(ledger, ORDERS, table_id)] == [("loaded", "")] * 2
    (seen,) = ledger._files.events(ORDERS, event="seen")
    assert (seen["path"], seen["mtime_ns"]) == ("orders/date=2013-01-01/a.json", 1), "it is not read a second time"


@pytest.mark.slow
def test_a_clock_that_goes_back_changes_nothing(lakehouse: Lakehouse) -> None:
    first = given(lakehouse, ORDERS, [order(1, 5)])
    with time_machine.travel("2001-01-01"):
        assert lakehouse.run(ORDERS).outcome is Outcome.NO_OP
        lakehouse.deliver(1, "b.json", [order(2, 6)])
        second = lakehouse.run(ORDERS)
    third = lakehouse.run(ORDERS)
    assert (second.batch_seq, second.certified_version) == ((first.batch_seq or 0) + 1, second.version)
    assert (third.outcome, third.version) == (Outcome.NO_OP, second.version)
    assert [row[0] for row in lakehouse.rows(ORDERS, "order_id")] == ["o1", "o2"]

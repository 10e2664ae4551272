"""One broken file never blocks another, and fails no more runs than the spec allows."""

from __future__ import annotations

import gzip
import os
from datetime import date

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from include.control.landing.file_states import file_states
from include.control.ledger.ledger import Ledger
from include.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def test_broken_files_fail_the_run_after_all_others_are_loaded(lakehouse: Lakehouse) -> None:
    whole = gzip.compress("".join(f'{{"order_id": "o{i}"}}\n' for i in range(500)).encode())
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*", "format": "json"}))
    lakehouse.deliver(1, "good.json.gz", whole)
    lakehouse.deliver(1, "cut.json.gz", whole[: len(whole) // 2])
    lakehouse.deliver(1, "is_parquet.json", b"PAR1 and then some PAR1")
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.exit_code) == (Outcome.BAD_INPUT, ExitCode.BAD_INPUT)
    first_line, *others = report.message.splitlines()
    assert first_line.startswith("bronze.orders: 2 of 3 files cannot be loaded, the others are loaded")
    assert any("cut.json.gz: truncated gzip" in line for line in others)
    assert len(lakehouse.rows(ORDERS, "order_id")) == 500
    lakehouse.deliver(1, "cut.json.gz", gzip.compress(b'{"order_id": "again"}\n'))
    (lakehouse.folder / "landing/orders/date=2013-01-01/is_parquet.json").unlink()
    assert lakehouse.run(ORDERS).outcome == Outcome.COMMITTED
    assert len(lakehouse.rows(ORDERS, "order_id")) == 501


@pytest.mark.slow
def test_a_broken_file_fails_as_many_runs_as_the_spec_allows_and_no_more(lakehouse: Lakehouse) -> None:
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


def test_an_unreachable_file_is_listed_as_such_until_it_is_loaded(lakehouse: Lakehouse) -> None:
    touched, stuck = lakehouse.deliver(1, "a.json", [order(1, 5)]), lakehouse.deliver(1, "b.json", "")
    stuck.unlink()
    stuck.symlink_to("/proc/self/mem")  # whose first page cannot be read: EIO
    failed = lakehouse.run(ORDERS)
    ledger, table_id = Ledger(lakehouse.paths), failed.table_id
    assert failed.outcome is Outcome.NOT_READY
    assert [state.status for state in file_states(ledger, ORDERS, table_id)] == ["loaded", "unreachable"]
    assert "Input/output error" in file_states(ledger, ORDERS, table_id)[1].reason
    stuck.unlink()
    lakehouse.deliver(1, "b.json", [order(2, 5)])
    os.utime(touched, ns=(1, 1))
    assert lakehouse.run(ORDERS).rows.read == 1
    assert [(state.status, state.reason) for state in file_states(ledger, ORDERS, table_id)] == [("loaded", "")] * 2
    (seen,) = ledger._files.events(ORDERS, event="seen")
    assert (seen["path"], seen["mtime_ns"]) == ("orders/date=2013-01-01/a.json", 1), "it is not read a second time"


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

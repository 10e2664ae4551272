"""Records of erased subjects: dropped and counted by a rule with a name, in whatever form they come again."""

from __future__ import annotations

import gzip
from datetime import timedelta
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.ledger import Ledger
from millrace.erase.landing import erase_landing
from millrace.erase.subjects import Subjects
from millrace.erase.suppression import Suppressions
from millrace.errors import ExitCode, Outcome
from millrace_spark.layers.bronze.bronze import BronzeIngest
from tests.support.documents.specs import Document, bronze_document
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE = "bronze.orders"
ERASED = "C-1717"


def with_keys(**changes: object) -> Document:
    """Return a spec whose orders have a buyer, and a number of a phone."""
    document = bronze_document(**changes)
    document["columns"] |= {"buyer": {"type": "string"}, "phone": {"type": "decimal(12,2)"}}
    return {**document, "subject_keys": {"buyer": "customer", "phone": "subscriber"}}


def files_with(folder: Path, text: bytes) -> list[Path]:
    """Return the files below a folder that have a text, also those that are compressed."""
    found = []
    for file in (path for path in folder.rglob("*") if path.is_file()):
        content = file.read_bytes()
        if content.startswith(b"PAR1"):
            content = str(pq.read_table(file).to_pylist()).encode()
        if content.startswith(b"\x1f\x8b"):
            content = gzip.decompress(content)
        found += [file] if text in content else []
    return found


def test_a_record_of_an_erased_subject_is_dropped_and_leaves_nothing_even_if_other_rules_refuse_it(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    lakehouse.specs(with_keys(expectations=[AT_LEAST_0]))
    listed = Suppressions(lakehouse.paths)
    listed.add(Subjects("customer", (ERASED, "0017")), "DSR-1", "ann")
    listed.add(Subjects("subscriber", ("0555",)), "DSR-2", "ann")
    lakehouse.deliver(
        1,
        "a.json",
        [
            order(1, 5, buyer="C-18"),
            order(2, 6, buyer=ERASED, colour="red"),
            order(3, -7, buyer=ERASED),  # the rule of the amount alone would keep it in the quarantine
            order(4, -8, buyer="C-19"),
            order(5, 9, buyer="17"),
            order(6, 9, buyer="0017"),
            order(7, 9, phone=555),
            order(8, 9, phone=55.5),
            order(9, "much", buyer=ERASED),  # a value that does not fit its column
        ],
    )
    # The driver dies after its commit; others are erased before a run closes the batch, by the list of the plan.
    monkeypatch.setattr(BronzeIngest, "close", Mock(side_effect=RuntimeError("the driver has died")))
    assert lakehouse.run(BRONZE).outcome is Outcome.FAILED
    monkeypatch.undo()
    listed.add(Subjects("customer", ("C-18",)), "DSR-3", "ann")

    report = lakehouse.run(BRONZE)

    assert report.exit_code is ExitCode.OK, report.message
    assert report.rows.model_dump(exclude_defaults=True) == {
        "read": 9, "applied": 3, "inserted": 3, "quarantined": 1, "dropped": 5
    }  # fmt: skip
    assert lakehouse.rows(BRONZE, "order_id") == [("o1",), ("o5",), ("o8",)]
    [kept] = lakehouse.quarantine(BRONZE)
    assert "C-19" in kept["record"]
    dropped = {each.reason: each.rows for each in report.findings.refused if each.action == "drop"}
    assert dropped == {"erased subject (customer)": 4, "erased subject (subscriber)": 1}
    assert files_with(lakehouse.folder / "lake", ERASED.encode()) == []
    assert files_with(lakehouse.folder / "reports", ERASED.encode()) == []
    [event] = [row for row in Ledger(lakehouse.paths).file_events(BRONZE, report.table_id) if row["event"] == "loaded"]
    assert (event["rows_read"], event["rows_dropped"], event["rows_rescued"]) == (9, 5, 0)


def test_a_fixed_or_replayed_row_of_an_erased_subject_does_not_come_back_either(lakehouse: Lakehouse) -> None:
    lakehouse.specs(with_keys(expectations=[AT_LEAST_0]))
    lakehouse.deliver(1, "a.json", [order(1, -1, buyer=ERASED), order(2, -2, buyer="C-18")])
    assert lakehouse.run(BRONZE).rows.quarantined == 2
    Suppressions(lakehouse.paths).add(Subjects("customer", (ERASED,)), "DSR-1", "ann")

    request = QuarantineRequest(said_by="ann", assign={"amount": "abs(amount)"})
    fixed = lakehouse.ask(Job.QUARANTINE_FIX, BRONZE, request)

    assert (fixed.details["applied"], fixed.details["dropped"]) == (1, 1)
    assert ERASED not in fixed.model_dump_json()
    assert not files_with(lakehouse.folder / "lake" / "ops", ERASED.encode())
    report = lakehouse.replay(BRONZE, assign={"amount": "abs(amount)"})
    assert (report.rows.read, report.rows.applied, report.rows.dropped) == (2, 1, 1), report.message
    assert lakehouse.rows(BRONZE, "order_id") == [("o2",)]


def test_a_rewritten_parquet_file_stays_loaded_and_a_rebuild_has_all_others(lakehouse: Lakehouse) -> None:
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "bigint"}}
    source = {"landing": "orders", "files": "*.parquet", "format": "parquet"}
    policy = {"subject_keys": {"buyer": "customer"}, "erase": {"landing_files": "rewrite"}}
    document = {**bronze_document(columns=columns, source=source), **policy}
    lakehouse.specs(document)
    file = lakehouse.deliver(1, "a.parquet", b"")
    pq.write_table(pa.table({"order_id": ["o1", "o2"], "buyer": [18, 17]}), file)
    delivered = file.read_bytes()
    assert lakehouse.run(BRONZE).rows.applied == 2, "nobody is on the list"
    gone, spec = Subjects("customer", ("17.0",)), BronzeSpec.model_validate({"domain": "shop", **document})
    Suppressions(lakehouse.paths).add(gone, "DSR-1", "ann")
    leases, ledger = lakehouse_leases(lakehouse.paths, "erasure", timedelta(seconds=9)), Ledger(lakehouse.paths)

    done = list(erase_landing(spec, gone, str(lakehouse.folder / "landing"), {BRONZE: spec}, ledger, leases))

    assert [(each.action, each.records, each.why) for each in done] == [("rewrite", 1, "")]
    assert lakehouse.run(BRONZE).outcome is Outcome.NO_OP, "no run loads it again, or refuses it as changed"
    lakehouse.deliver(1, "old.parquet", delivered)
    report = lakehouse.run(BRONZE)
    assert (report.rows.read, report.rows.applied, report.rows.dropped) == (2, 1, 1), report.message
    rebuilt = lakehouse.rebuild(BRONZE)
    assert rebuilt.exit_code is ExitCode.OK, rebuilt.message
    assert lakehouse.rows(BRONZE, "order_id") == [("o1",), ("o1",)], "one of each file"

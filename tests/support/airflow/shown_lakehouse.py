"""A lakehouse for pages: a table in each condition, and hostile texts wherever a source or a person can write one."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.overrides import override
from millrace.control.gates.result import Override
from millrace.control.ledger.deletes import DeleteRecords, Deletes
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import BatchSources, FileFact
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.waiting import recount_waiting
from millrace.paths import LakehousePaths
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    gold_document,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.ledger.delta_tables import create_table_at, day, judge, load_batch
from tests.support.ledger.quarantine_rows import quarantine, refused

EVIL = "<script>alert('x')</script>\"'"

CREATED = datetime.now(UTC) - timedelta(hours=1)
"""When the tables were created: before the runs that pages show."""

FRESH = {"expect_table_to_be_fresh": {"column": "event_at", "max_age": "2 days"}, "action": "warn"}


def make_shown_lakehouse(root: Path, specs: Path) -> None:
    """Write specs and a ledger: certified tables (one by hand), refused, stale, waiting, not checked, new, wrong."""
    documents = {
        "orders": bronze_document(owner="shop-data", description=f"One row an order {EVIL}"),
        "bills": bronze_document("bronze.bills", owner=EVIL, on_drift="evolve", evolve="ask"),
        "stale": bronze_document("bronze.stale", expectations=[FRESH]),
        "unchecked": bronze_document("bronze.unchecked"),
        "allowed": bronze_document("bronze.allowed"),
        "never": bronze_document("bronze.never"),
    }
    write_specs(specs, *documents.values(), silver_document(owner="shop-data"), gold_document())
    (specs / "bronze" / "shop" / "wrong.yaml").write_text(f'table: bronze.wrong\nowner: "{EVIL!s:.10}"\nsuorce: 1\n')
    paths = LakehousePaths(root)
    orders, silver = bronze_spec(), silver_spec()
    names = ("bills", "stale", "unchecked", "allowed")
    for table in ("bronze.orders", "silver.orders", *(f"bronze.{name}" for name in names)):
        create_table_at(paths.table(table), CREATED)
    for rows in (5, 12, 7):
        file = FileFact(f"orders/{rows} {EVIL}.json", 9 * rows, 1, f"sum {rows}")
        batch = load_batch(root, orders, rows=rows, files=(file,))
        judge(root, orders, batch.version)
    broken = FileFact(f"orders/$(reboot) {EVIL}.json", 1, 1, "sum", defect=f"no JSON {EVIL}")
    Ledger(paths).record_files(FileEvent.FAILED, orders.table, batch.intent.table_id, day(4), [broken])
    judge(root, silver, load_batch(root, silver, rows=9).version)
    too_much = CheckResult(
        rule="expect_column_max_to_be_between(amount)", action="fail", passed=False, reason=EVIL, observed=EVIL,
        expected={"max_value": 9}, samples=(EVIL,),
    )  # fmt: skip
    version = load_batch(root, silver, rows=2, sources=BatchSources(replay="rows that waited")).version
    why = f"silver.orders version {version} refused: amount observed {EVIL}\nReplay, or let it pass {EVIL}."
    judge(root, silver, version, passed=False, checks=(too_much,), refused=why)
    record = json.dumps({"order_id": EVIL, "amount": 10**20, EVIL: [EVIL]})
    quarantine(
        paths,
        orders.table,
        *(refused(number, f"rule: {EVIL}", record=record, received=record, source=EVIL) for number in range(4)),
    )
    QuarantineEvents(paths).record(
        RowEvent.REOPENED, orders.table, table_id(paths.table(orders.table)), ["r1"], Decision(EVIL, EVIL, EVIL)
    )
    with recount_waiting(orders.table, table_id(paths.table(orders.table)), paths):
        pass
    for name in names:
        spec = bronze_spec(table=f"bronze.{name}", expectations=[FRESH] if name == "stale" else [])
        version = load_batch(root, spec).version
        if name in ("bills", "allowed"):
            judge(root, spec, version, passed=name == "bills")
        if name == "allowed":
            override(spec, version, Override(by=EVIL, reason=EVIL, run_id="run-1", at=CREATED), paths)
        if name == "stale":
            observed = (datetime.now(UTC) - timedelta(days=9)).isoformat()
            old = CheckResult(rule="expect_table_to_be_fresh(event_at)", action="warn", passed=True, observed=observed)
            judge(root, spec, version, checks=(old,))
    NewColumns(paths).record(ColumnState.PROPOSED, "bronze.bills", ["colour"], run_id="run-1")
    deletes = Deletes("silver.orders", "", day().start, "bronze.orders", "", 99, 3, 4, (EVIL,), f"it lacks them {EVIL}")
    DeleteRecords(paths).record_asked(deletes, "run-1")

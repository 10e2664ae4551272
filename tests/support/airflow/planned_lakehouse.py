"""A lakehouse whose backfill plan has days of every kind."""

from __future__ import annotations

from pathlib import Path

from millrace.contracts.job.report import CheckResult
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import FileFact
from millrace.settings import Settings
from tests.support.airflow.shown_lakehouse import EVIL
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    gold_document,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.ledger.delta_tables import day, judge, load_batch, sources_reading
from tests.support.listing import list_files

BILLS = bronze_spec(table="bronze.bills")
DEFECT = f"no JSON {EVIL}"
SECRET = f"4711 {EVIL}"


def make_planned_lakehouse(folder: Path) -> None:
    """Make the domain `flights` below a folder, which the settings name: `tables` and `landing`.

    It has a chain of tables: day 1 is loaded, day 2 is new, day 3 has not come, day 4 is broken. A table of another
    domain reads the chain, one reads Kafka, and a refused one quotes a hostile value.
    """
    topic = bronze_document("bronze.clicks", source={"kafka": "main", "topics": ["clicks"], "format": "json"})
    chain = (bronze_document(), silver_document(), gold_document())
    write_specs(folder / "tables", *chain, bronze_document("bronze.bills"), topic, domain="flights")
    write_specs(folder / "tables", gold_document("gold.finance"), domain="finance")
    hostile = f"{EVIL.replace('/', '')}.json"
    for feed, number, name in (
        ("orders", 1, "a.json"),
        ("orders", 2, "b.json"),
        ("orders", 4, hostile),
        ("bills", 1, "a.json"),
    ):
        file = folder / "landing" / feed / f"date=2013-01-0{number}" / name
        file.parent.mkdir(parents=True)
        file.write_text('{"order_id": "1"}\n')
    settings = Settings()
    root, landing = Path(settings.root), LocalLanding(settings.landing)
    orders = bronze_spec()
    batch = load_batch(root, orders, rows=7, files=list_files(orders, landing, day(1)))
    judge(root, orders, batch.version)
    read = load_batch(root, silver_spec(), sources=sources_reading(root, bronze__orders=(None, batch.version)))
    judge(root, silver_spec(), read.version)
    broken = [
        FileFact(file.path, file.size, file.mtime_ns, "sum", defect=DEFECT)
        for file in list_files(orders, landing, day(4))
    ]
    Ledger(settings.paths).record_files(FileEvent.FAILED, orders.table, batch.intent.table_id, day(4), broken)
    refused = load_batch(root, BILLS, files=list_files(BILLS, landing, day(1))).version
    check = CheckResult(rule="expect_column_max_to_be_between(amount)", action="fail", passed=False, observed=SECRET)
    judge(root, BILLS, refused, passed=False, checks=(check,), refused=f"{BILLS.table} observed {SECRET}")

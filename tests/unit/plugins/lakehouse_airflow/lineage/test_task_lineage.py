"""The tables that a task tells OpenLineage, beside those of whole runs in `tests/dags/test_openlineage.py`."""

from __future__ import annotations

from pathlib import Path

from include.catalog import load_catalog
from include.contracts.job.args import Job
from include.contracts.job.report import JobReport, RowCounts
from include.control.ledger.resolution import table_id
from include.control.log.batch import PinnedTable
from include.errors import Outcome
from include.paths import LakehousePaths
from include.settings import Settings
from lakehouse_airflow.lineage.task_lineage import lineage_of_write
from tests.support.documents.specs import write_specs
from tests.support.ledger.delta_tables import day, load_batch, sources_reading
from tests.support.silver.known_customers import BRONZE_ORDERS, CUSTOMERS, ORDERS, shop_documents


def test_the_table_for_whose_rows_others_wait_is_an_input_with_the_version_that_was_looked_into(tmp_path: Path) -> None:
    write_specs(tmp_path / "specs", *shop_documents())
    specs, paths = load_catalog(tmp_path / "specs").specs, LakehousePaths(tmp_path / "lake")
    for table in (BRONZE_ORDERS, CUSTOMERS):
        load_batch(paths.root, specs[table])
    looked_into = load_batch(paths.root, specs[CUSTOMERS]).version
    pinned = PinnedTable(table_id=table_id(paths.table(CUSTOMERS)), version=looked_into)
    sources = sources_reading(paths.root, bronze__orders=(None, 1)).model_copy(
        update={"references": {CUSTOMERS: pinned}}
    )
    winner = load_batch(paths.root, specs[ORDERS], sources=sources)
    report = JobReport(
        job=Job.SILVER_MERGE,
        table=ORDERS,
        run_id=winner.intent.run_id,
        outcome=Outcome.COMMITTED,
        message="",
        interval=day(1),
        version=winner.version,
        rows=RowCounts(read=1, applied=1, inserted=1),
    )
    found = lineage_of_write(ORDERS, report, winner.intent.run_id, Settings(root=paths.root, tables=tmp_path / "specs"))
    versions = {each.name: each.facets["version"].datasetVersion for each in found.inputs}
    assert versions == {str(paths.table(BRONZE_ORDERS)): "1", str(paths.table(CUSTOMERS)): str(looked_into)}
    assert [each.name for each in found.inputs if each.inputFacets] == [str(paths.table(BRONZE_ORDERS))]

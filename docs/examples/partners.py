"""Checks a table that another tool writes; the DAGs that wait for it start if its new version has passed."""

from datetime import UTC, datetime
from pathlib import Path

from airflow.sdk import DAG, task

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.operators.quality_gate import QualityGateOperator
from millrace.settings import Settings

PARTNERS = "bronze.partners"

with DAG(
    dag_id="partners",
    schedule="0 6 * * *",
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    default_args={"owner": "sales"},
) as dag:

    @task
    def export() -> None:
        """Stand for the other tool: anything that commits to the Delta table."""
        import pyarrow as pa
        from deltalake import write_deltalake

        rows = {"partner_id": ["p1", "p2"], "country": ["DK", "SE"]}
        write_deltalake(str(Settings().paths.table(PARTNERS)), pa.table(rows), mode="overwrite")

    gate = QualityGateOperator(
        task_id="gate",
        table=PARTNERS,
        specs=str(Path(__file__).with_name("specs")),
        outlets=[table_asset(PARTNERS)],
        pool="spark",
    )
    export() >> gate

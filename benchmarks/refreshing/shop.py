"""A lake with certified orders of a given size and layout, and the gold tables of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from pyspark.sql import SparkSession

from include.catalog import load_catalog
from include.contracts.job.args import Job, JobArgs
from include.contracts.job.report import JobReport
from include.control.gates.gates import Gates
from include.control.gates.result import GateResult
from include.control.ledger.resolution import table_id
from include.control.log.delta_log import latest_version
from include.errors import ExitCode
from include.paths import LakehousePaths
from spark_jobs.delta_io.tables import sql_path
from spark_jobs.jobs import gold_aggregate
from spark_jobs.runtime.entrypoint import run_and_report

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS, CUSTOMERS = 1_000, 50_000
BY_DAY, BY_CUSTOMER, BY_MONTH = "files by day", "files by customer", "partitions by month"
_DAY = "date_add(DATE'2020-01-01', CAST({} AS INT))"
_IN_ORDER, _AT_RANDOM = "id * {} DIV {rows}", "pmod(xxhash64(id, {}), {})"
_FILES = 24

COLUMNS = {
    "id": "bigint", "customer": "int", "day": "date", "month": "string", "amount": "decimal(10,2)",
    "status": "string", "country": "string", "md5": "string",
}  # fmt: skip
_VALUES = {
    "amount": "CAST(pmod(xxhash64(id, 2), 100000) / 100 AS DECIMAL(10, 2))",
    "status": "element_at(array('new', 'paid', 'sent', 'returned'), CAST(1 + pmod(id, 4) AS INT))",
    "country": "element_at(array('AT', 'BE', 'CH', 'DE', 'DK', 'ES', 'FR', 'IT'), CAST(1 + pmod(id, 8) AS INT))",
    "md5": "md5(CAST(id AS STRING))",
}

_SOURCES = {"o": {"table": SILVER}}
_MEASURES = {"orders": "count(*)", "total": "sum(o.amount)", "largest": "max(o.amount)"}
_PLACES = """
SELECT id, day, customer, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC, id) AS place
FROM o
"""
GOLD: dict[str, dict[str, Any]] = {
    "gold.by_day": {
        "sources": _SOURCES,
        "group_by": {"day": "o.day", "country": "o.country"},
        "measures": _MEASURES,
        "refresh_by": "day",
        "refresh_from": {"o": "day"},
    },
    "gold.by_customer": {
        "sources": _SOURCES,
        "group_by": {"customer": "o.customer"},
        "measures": _MEASURES,
        "refresh_by": "customer",
        "refresh_from": {"o": "customer"},
    },
    "gold.places": {"sources": _SOURCES, "query": _PLACES, "refresh_by": "day"},
}


class Shop:
    """A lake below a folder.

    Args:
        session: a session of Millrace.
        folder: the folder of the lake and its specs.
    """

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        self.folder = folder
        self.paths = LakehousePaths(folder / "lake")

    def create(self, rows: int, layout: str) -> None:
        """Write the specs and the orders, whose files have the days or the customers in order."""
        self._write_specs()
        day, customer = _IN_ORDER.format(DAYS, rows=rows), _AT_RANDOM.format(3, CUSTOMERS)
        if layout == BY_CUSTOMER:
            day, customer = _AT_RANDOM.format(1, DAYS), _IN_ORDER.format(CUSTOMERS, rows=rows)
        values = {"customer": f"CAST({customer} AS INT)", "day": _DAY.format(day), **_VALUES}
        orders = self._session.range(0, rows, numPartitions=_FILES)
        orders = orders.selectExpr("id", *(f"{sql} AS {name}" for name, sql in values.items()))
        orders = orders.selectExpr(
            *(name if name != "month" else "date_format(day, 'yyyy-MM') AS month" for name in COLUMNS)
        )
        writer = orders.write.format("delta").option("delta.enableChangeDataFeed", "true")
        if layout == BY_MONTH:
            writer = writer.partitionBy("month")
        writer.save(str(self.paths.table(SILVER)))
        self._certify()

    def change(self, where: str) -> None:
        """Change the amount of the orders that meet a condition."""
        self._session.sql(
            f"UPDATE {sql_path(self.paths.table(SILVER))} SET amount = amount + 1 WHERE {where}"
        ).collect()
        self._certify()

    def refresh(self, table: str, *, reprocess: bool = False) -> JobReport:
        """Run the job of a gold table.

        Raises:
            RuntimeError: it failed.
        """
        args = JobArgs.model_validate(
            {
                "table": table, "interval_start": "2025-01-01T00:00:00Z", "interval_end": "2025-01-02T00:00:00Z",
                "run_id": "benchmark", "root": self.paths.root, "landing": str(self.folder / "landing"),
                "tables": self.folder / "tables", "report": self.folder / "reports" / f"{table}.json",
                "reprocess": reprocess,
            }
        )  # fmt: skip
        report = run_and_report(Job.GOLD_AGGREGATE, gold_aggregate.run, args)
        if report.exit_code is not ExitCode.OK:
            raise RuntimeError(report.message)
        return report

    def _certify(self) -> None:
        path, spec = self.paths.table(SILVER), load_catalog(self.folder / "tables").spec(SILVER)
        result = GateResult(
            table=SILVER, table_id=table_id(path), version=latest_version(path), suite_hash=spec.suite_hash, passed=True
        )
        Gates(self.paths).record(result)

    def _write_specs(self) -> None:
        columns = {name: {"type": kind} for name, kind in COLUMNS.items()}
        source = {"landing": "orders", "files": "*.parquet", "format": "parquet"}
        silver: dict[str, Any] = {"source": BRONZE, "keys": ["id"], "sequence_by": ["amount"], "columns": columns}
        specs: dict[str, dict[str, Any]] = {BRONZE: {"source": source, "columns": columns}, SILVER: silver, **GOLD}
        for table, spec in specs.items():
            layer, name = table.split(".")
            path = self.folder / "tables" / layer / "bench" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump({"table": table, **spec}, sort_keys=False))

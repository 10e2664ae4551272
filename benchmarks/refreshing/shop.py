"""A lake with certified orders, and the gold tables of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from benchmarks.refreshing.orders import CUSTOMER_COLUMNS, ORDER_COLUMNS, change_orders, write_customers, write_orders
from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import latest_version
from millrace.errors import ExitCode
from millrace.paths import LakehousePaths
from millrace_spark.jobs import gold_aggregate
from millrace_spark.runtime.entrypoint import run_and_report

SILVER, CUSTOMERS_TABLE = "silver.orders", "silver.customers"
_SOURCES = {"o": {"table": SILVER}}
_MEASURES = {"orders": "count(*)", "total": "sum(o.amount)", "largest": "max(o.amount)"}
_PLACES = """
SELECT id, day, customer, amount, rank() OVER (PARTITION BY day ORDER BY amount DESC, id) AS place
FROM o
"""


def _by(column: str, *others: str) -> dict[str, Any]:
    """Return the keys of a table of orders by these columns, refreshed by the first."""
    groups = {name: f"o.{name}" for name in (column, *others)}
    keys = {"group_by": groups, "measures": _MEASURES, "refresh_by": column, "refresh_from": {"o": column}}
    return {"sources": _SOURCES, **keys}


GOLD: dict[str, dict[str, Any]] = {
    "gold.by_day": _by("day", "country"),
    "gold.by_customer": _by("customer"),
    "gold.by_basket": _by("basket"),
    "gold.places": {"sources": _SOURCES, "query": _PLACES, "refresh_by": "day"},
    "gold.by_segment": {
        "sources": {
            **_SOURCES,
            "c": {"table": CUSTOMERS_TABLE, "join": "left", "on": "c.id = o.customer", "lookup": True},
        },
        "group_by": {"day": "o.day", "segment": "c.segment"},
        "measures": _MEASURES,
        "refresh_by": "day",
        "refresh_from": {"o": "day"},
    },
    "gold.by_month": {
        "sources": {"d": {"table": "gold.by_day"}},
        "group_by": {"month": "trunc(d.day, 'month')"},
        "measures": {"orders": "sum(d.orders)", "total": "sum(d.total)", "largest": "max(d.largest)"},
        "refresh_by": "month",
        "refresh_from": {"d": "trunc(day, 'month')"},
    },
}


class Shop:
    """A lake below a folder.

    Args:
        folder: the folder of the lake and its specs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.paths = LakehousePaths(folder / "lake")

    def create(self, rows: int) -> None:
        """Write the specs, the orders and the customers."""
        self._write_specs()
        write_orders(Path(self.paths.table(SILVER)), rows)
        write_customers(Path(self.paths.table(CUSTOMERS_TABLE)))
        self._certify(SILVER)
        self._certify(CUSTOMERS_TABLE)

    def change(self, where: str) -> int:
        """Change the amount of the orders that meet a condition, and return their number."""
        changed = change_orders(Path(self.paths.table(SILVER)), where)
        self._certify(SILVER)
        return changed

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

    def _certify(self, table: str) -> None:
        path, spec = self.paths.table(table), load_catalog(self.folder / "tables").spec(table)
        result = GateResult(
            table=table, table_id=table_id(path), version=latest_version(path), suite_hash=spec.suite_hash, passed=True
        )
        Gates(self.paths).record(result)

    def _write_specs(self) -> None:
        specs = {**_loaded("orders", "amount", ORDER_COLUMNS), **_loaded("customers", "segment", CUSTOMER_COLUMNS)}
        for table, spec in {**specs, **GOLD}.items():
            layer, name = table.split(".")
            path = self.folder / "tables" / layer / "bench" / f"{name}.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(yaml.safe_dump({"table": table, **spec}, sort_keys=False))


def _loaded(name: str, sequence: str, columns: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the specs of the bronze and of the silver table of a name."""
    typed = {column: {"type": kind} for column, kind in columns.items()}
    source = {"landing": name, "files": "*.parquet", "format": "parquet"}
    bronze = f"bronze.{name}"
    silver = {"source": bronze, "keys": ["id"], "sequence_by": [sequence], "columns": typed}
    return {bronze: {"source": source, "columns": typed}, f"silver.{name}": silver}

"""Batches of 10,000 orders merged into tables of several sizes, each checked by what changed and by all rows.

spark-submit in_one_session.py WORK COSTS     WORK: JSON of `folder`, `cases` and `rounds`

It measures each MERGE and each check by themselves, under the names that `series/gate_growth.py` reads. The first round
warms up.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.cost import noted
from benchmarks.gates.suite import COLUMNS, rules
from millrace.control.gates.judged_figures import JudgedFigures
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import USER_METADATA_KEY, latest_version
from millrace_spark.delta_io.reads import read_version
from millrace_spark.layers.gate.changed_rows import JudgedVersion, change_since, next_figures
from millrace_spark.quality.fused.one_pass import GATE_CONF
from millrace_spark.quality.suites import check_rules
from millrace_spark.runtime.entrypoint import start_process
from millrace_spark.runtime.session import own_session

BATCH, NEW = 10_000, 2_000
RECENT, UNIFORM = "recent", "uniform"
BY_CHANGE, BY_ALL_ROWS, MERGE = "by the change", "by all rows", "MERGE"
_FILES = 16


class OrdersTable:
    """A table of orders, and the figures of its last check."""

    def __init__(self, session: SparkSession, path: Path, rows: int, kind: str) -> None:
        self.session, self.path, self.rows, self.kind = session, path, rows, kind
        self.suite = rules()
        self.last: JudgedFigures | None = None

    def create(self) -> None:
        """Write the table, in files of consecutive orders."""
        orders = self.session.range(0, self.rows, numPartitions=_FILES).selectExpr(*_columns(event=0))
        orders.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(self.path))

    def merge(self, number: int) -> None:
        """Merge the batch of a round: four fifths are known orders."""
        first = self.rows + number * NEW
        if self.kind == RECENT:
            ids = self.session.range(first - BATCH + NEW, first + NEW)
        else:
            step = first // BATCH
            ids = self.session.range(BATCH).selectExpr(f"if(id < {NEW}, {first} + id, id * {step}) AS id")
        ids.selectExpr(*_columns(event=number)).createOrReplaceTempView("batch")
        low, high = ids.selectExpr("min(id)", "max(id)").collect()[0]
        metadata = json.dumps({USER_METADATA_KEY: {"token": f"batch {number}"}})
        self.session.conf.set("spark.databricks.delta.commitInfo.userMetadata", metadata)
        self.session.sql(
            f"MERGE INTO delta.`{self.path}` t USING batch s ON t.id = s.id AND t.id BETWEEN {low} AND {high} "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        ).collect()

    def check(self, *, by_change: bool) -> None:
        """Check the newest version as a gate does.

        Raises:
            RuntimeError: a rule failed, or was not judged as it should be.
        """
        version = latest_version(self.path)
        judged = JudgedVersion(self.path, version, "rules", table_rows(self.path, version))
        with own_session(GATE_CONF) as session:
            change = change_since(self.last if by_change else None, judged, session, "cheaper", proof_after=50)
            checks, lasting = check_rules(read_version(session, self.path, version), self.suite, change=change)
        if not all(check.passed for check in checks):
            raise RuntimeError(f"rules failed: {[check for check in checks if not check.passed]}")
        if by_change:
            ways = {check.judged_by for check in checks}
            if self.last and ways != {str(change)}:
                raise RuntimeError(f"not only by the change: {ways}")
            self.last = next_figures(judged, change, lasting)


def main(work: Path, costs: Path) -> None:
    """Write the tables, then merge and check in turn, and note the costs."""
    start_process()
    asked = json.loads(work.read_text())
    folder, cases = Path(asked["folder"]), [tuple(case) for case in asked["cases"]]
    with own_session({"spark.databricks.delta.autoCompact.enabled": "false"}) as session:
        tables = {}
        for rows, kind in cases:
            name = f"{rows} {kind}"
            tables[name] = OrdersTable(session, folder / name.replace(" ", "_"), rows, kind)
            tables[name].create()
            tables[name].check(by_change=True)
        for number in range(1, asked["rounds"] + 2):
            for name, table in tables.items():
                _measure(costs, f"{name}/{number}", table, number)


def _measure(costs: Path, name: str, table: OrdersTable, number: int) -> None:
    with noted(costs, f"{name}/{MERGE}"):
        table.merge(number)
    with noted(costs, f"{name}/{BY_CHANGE}"):
        table.check(by_change=True)
    with noted(costs, f"{name}/{BY_ALL_ROWS}"):
        table.check(by_change=False)


def _columns(event: int) -> list[str]:
    return [f"{sql.format(id='id', event=event)} AS {name}" for name, sql in COLUMNS.items()]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

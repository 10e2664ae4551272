"""A Delta table that is checked again after each change, by what changed and by all rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.spec.expectation import Expectation
from include.control.gates.judged_figures import JudgedFigures
from include.control.ledger.states.measures import table_rows
from include.control.log.batch import BatchSources
from include.control.log.delta_log import latest_version
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.gate.changed_rows import JudgedVersion, change_since, next_figures
from spark_jobs.quality.fused.one_pass import GATE_CONF
from spark_jobs.quality.suites import CheckedRules, check_rules
from spark_jobs.quality.verdicts.comparable_version import IN_TABLE, ComparableVersion
from spark_jobs.runtime.session import own_session
from tests.support.ledger.delta_tables import intent_of
from tests.support.quality.compared_version import compared_version
from tests.support.quality.odd_frames import frame

METADATA = "spark.databricks.delta.commitInfo.userMetadata"
OTHER = "silver.other"

Step = tuple[str, Any]
"""A change of a table: `insert` with rows, `merge` with rows by the first column, `update` with a setting and a
condition, `delete` with a condition, `restore`, or `optimize`."""


class CheckedTable:
    """A Delta table with rules, a second one whose values the rules may require, and the figures of the last check."""

    def __init__(self, spark: SparkSession, folder: Path, rules: list[Expectation]) -> None:
        self.spark, self.path, self.other, self.rules = spark, folder / "table", folder / "other", rules
        self.last: JudgedFigures | None = None

    @contextmanager
    def batch(self, **sources: Any) -> Iterator[None]:
        """Let the commits within be those of a batch."""
        self.spark.conf.set(METADATA, intent_of("t", 1, sources=BatchSources(**sources)).user_metadata())
        yield
        self.spark.conf.unset(METADATA)

    def create(self, first: list[tuple[Any, ...]], of_other: list[tuple[Any, ...]]) -> None:
        for path, rows in ((self.path, first), (self.other, of_other)):
            writer = frame(self.spark, rows).write.format("delta").option("delta.enableChangeDataFeed", "true")
            writer.save(str(path))

    def apply(self, step: Step, *, to_other: bool = False) -> None:
        path = self.other if to_other else self.path
        kind, given = step
        table = f"delta.`{path}`"
        with self.batch(restores=0) if kind == "restore" else self.batch():
            if kind == "insert":
                frame(self.spark, given).write.format("delta").mode("append").save(str(path))
            elif kind == "merge":
                batch = {row[0]: row for row in given}  # MERGE refuses two rows for one key
                frame(self.spark, list(batch.values())).createOrReplaceTempView("batch")
                self.spark.sql(
                    f"MERGE INTO {table} t USING batch s ON t.whole <=> s.whole WHEN MATCHED AND s.yes THEN DELETE "
                    "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
                ).collect()
            elif kind == "update":
                self.spark.sql(f"UPDATE {table} SET {given[0]} WHERE {given[1]}").collect()
            elif kind == "delete":
                self.spark.sql(f"DELETE FROM {table} WHERE {given}").collect()
            elif kind == "restore":
                version = max(latest_version(path) - 1, 0)
                self.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
            else:
                self.spark.sql(f"OPTIMIZE {table}").collect()

    def check(self) -> tuple[CheckedRules, CheckedRules]:
        """Return the check by what changed since the last check, and that of all rows."""
        version, others = latest_version(self.path), {OTHER: (self.other, latest_version(self.other))}
        judged = JudgedVersion(self.path, version, "rules", table_rows(self.path, version), others)
        with own_session(GATE_CONF) as session:
            df, compared = read_version(session, self.path, version), self._compared(session, judged)
            change = change_since(self.last, judged, session)
            by_change = check_rules(df, self.rules, compared, change)
            of_all_rows = check_rules(df, self.rules, compared)
        self.last = next_figures(judged, change, by_change.lasting)
        return by_change, of_all_rows

    def _compared(self, session: SparkSession, judged: JudgedVersion) -> ComparableVersion:
        return compared_version(
            {},
            version=judged.version,
            facts={IN_TABLE: judged.rows},
            others={OTHER: judged.others[OTHER][1]},
            read=lambda _, version: read_version(session, self.other, version),
            rows_of=lambda _, version: table_rows(self.other, version),
        )

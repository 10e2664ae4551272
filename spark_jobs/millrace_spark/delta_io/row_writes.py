"""Write rows to a table without a merge: append them, or replace others; and read what Spark counted meanwhile."""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import DataFrame, Observation

from millrace.contracts.lake_path import LakePath
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.delta_log import commit_actions, read_commit
from millrace_spark.delta_io.tables import spark_path

PATIENCE_S = 30.0
"""How long to wait for the figures, which another thread of Spark reports a moment after the write."""


EVERY_ROW = "true"
"""The predicate of a `replace_where` that replaces the whole table."""


def append(rows: DataFrame, path: LakePath) -> None:
    """Append the rows to the table at `path` in one commit."""
    rows.write.format("delta").mode("append").save(spark_path(path))


def replace_where(rows: DataFrame, path: LakePath, predicate: str, rows_per_file: int = 0) -> None:
    """Replace the rows of the table at `path` for which `predicate` is true, in one commit.

    Delta refuses new rows that do not fulfil the predicate.

    Args:
        rows: the new rows.
        path: the folder of the table.
        predicate: which rows they replace, as Spark SQL.
        rows_per_file: after how many rows a task begins another file; 0 for one file, however large.
    """
    written = rows.write.format("delta").mode("overwrite").option("replaceWhere", predicate)
    written.option("maxRecordsPerFile", rows_per_file).save(spark_path(path))


def replaced_rows(path: LakePath, version: int) -> tuple[int, int]:
    """Return (rows written, rows removed) of an append or a `replace_where`, without rows that Delta only copied."""
    commit = read_commit(path, version)
    metrics = commit.metrics if commit else {}
    written = int(metrics.get("numOutputRows", "0")) - int(metrics.get("numCopiedRows", "0"))
    if "numDeletedRows" not in metrics and int(metrics.get("numRemovedFiles", "0")):
        # The metrics of a commit that writes no row do not count the removed rows either.
        return written, table_rows(path, version - 1) - table_rows(path, version)
    return written, int(metrics.get("numDeletedRows", "0"))


def replaced_where(path: LakePath, version: int) -> str:
    """Return the predicate of a commit of `replace_where`, which is true for all rows that it wrote, and no others."""
    info = next(action["commitInfo"] for action in commit_actions(path, version) if "commitInfo" in action)
    return str(info["operationParameters"]["predicate"])


def read_observation(observation: Observation) -> dict[str, Any] | None:
    """Return the figures of a finished write; None if its frame never ran, so that the caller must count again.

    Delta skips a write whose number is in the log, without an error: a batch's commit may succeed after its writer got
    an error. A plain `Observation.get` would then wait for ever in the driver's own Spark.
    """
    own = getattr(observation, "_jo", None)
    if own is not None:
        end = time.monotonic() + PATIENCE_S
        while not own.future().isCompleted():
            if time.monotonic() > end:
                return None
            time.sleep(0.02)
    return observation.get or None

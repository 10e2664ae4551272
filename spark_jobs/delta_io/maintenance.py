"""OPTIMIZE, VACUUM, the end of old tombstones: commits without a txn, with the run's id in their `userMetadata`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from spark_jobs.delta_io.tables import sql_path

SMALL_FILE_BYTES = 32 * 1024 * 1024
"""Files below this cost more to open than to read."""

SMALL_FILES_WORTH_A_RUN = 8
"""Fewer small files are not worth rewriting."""

MAINTENANCE_CONF = {"spark.databricks.delta.optimize.batchSize": "1g"}
"""OPTIMIZE commits every gigabyte, so that what was done is kept when it is stopped."""


def small_files(path: Path) -> int:
    """How many small data files of the newest version share their partition with another one, from the log alone.

    A small file that is alone in its partition can be put together with none: counting it would rewrite a Z-ordered
    table of many partitions at every run, and change nothing.
    """
    actions = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True))
    if not actions.num_rows:
        return 0
    small = actions.filter(pc.less(actions["size_bytes"], SMALL_FILE_BYTES))
    partition = [name for name in small.column_names if name.startswith("partition.")]
    files = small.group_by(partition).aggregate([([], "count_all")])["count_all"].to_pylist()
    return sum(count for count in files if count > 1)


def optimize(session: SparkSession, path: Path, zorder_by: tuple[str, ...]) -> dict[str, Any]:
    """Bin-pack the table, or Z-order it by `zorder_by`; returns Delta's metrics."""
    by = f" ZORDER BY ({', '.join(zorder_by)})" if zorder_by else ""
    rows = session.sql(f"OPTIMIZE {sql_path(path)}{by}").select("metrics").collect()
    metrics = rows[0]["metrics"].asDict()
    return {name: metrics[name] for name in ("numFilesAdded", "numFilesRemoved")}


def files_to_vacuum(session: SparkSession, path: Path) -> int:
    """How many files VACUUM would delete; nothing is deleted. Empty folders, which it lists as well, do not count."""
    return session.sql(f"VACUUM {sql_path(path)} DRY RUN").where("path LIKE '%.parquet'").count()


def vacuum(session: SparkSession, path: Path) -> None:
    """Delete the files that no version within the table's own retention needs.

    No `RETAIN` is given: the table property rules, and Delta ignores anything else without a word.
    """
    session.sql(f"VACUUM {sql_path(path)}").collect()


def delete_tombstones(session: SparkSession, path: Path, keys: Sequence[str], upto: int) -> int:
    """Forget the keys that batches up to `upto` have buried, in one commit; returns how many.

    The tombstone of a truncate, which has no key, stays.
    """
    has_a_key = " OR ".join(f"`{key}` IS NOT NULL" for key in keys)
    rows = session.sql(f"DELETE FROM {sql_path(path)} WHERE `_batch_seq` <= {upto} AND ({has_a_key})").collect()
    return int(rows[0]["num_affected_rows"])

"""OPTIMIZE, VACUUM and the deletion of old tombstones: commits without a txn, with the run's id as `userMetadata`."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.control.log.batch import ONE_STREAM
from millrace_spark.delta_io.tables import sql_path


def optimize_conf(file_bytes: int) -> dict[str, str]:
    """Return Spark settings: OPTIMIZE makes files of about `file_bytes`, and leaves files of at least half that size.

    It commits every gigabyte, so that finished work stays when it is stopped.
    """
    sizes = {"maxFileSize": str(file_bytes), "minFileSize": str(file_bytes // 2), "batchSize": "1g"}
    return {f"spark.databricks.delta.optimize.{name}": size for name, size in sizes.items()}


def optimize(session: SparkSession, path: LakePath, zorder_by: Sequence[str]) -> None:
    """Z-order the table by `zorder_by`, or bin-pack it if that is empty, in any number of commits, even none."""
    by = f" ZORDER BY ({', '.join(zorder_by)})" if zorder_by else ""
    session.sql(f"OPTIMIZE {sql_path(path)}{by}").collect()


def vacuum(session: SparkSession, path: LakePath) -> None:
    """Delete the files that no version within the table's own retention needs.

    It has no `RETAIN`: the table property decides, and Delta ignores any other value silently.
    """
    session.sql(f"VACUUM {sql_path(path)}").collect()


def count_returned_keys(session: SparkSession, tombstones: LakePath, table: LakePath, keys: Sequence[str]) -> int:
    """Count the deleted keys that have a row again that is later than their delete."""
    pairs = f"{sql_path(tombstones)} AS t JOIN {sql_path(table)} AS s ON {_has_returned(keys)}"
    return int(session.sql(f"SELECT count(*) AS keys FROM {pairs}").collect()[0]["keys"])


def delete_returned_keys(session: SparkSession, tombstones: LakePath, table: LakePath, keys: Sequence[str]) -> int:
    """Delete the tombstones of keys that have a row again, in one commit; return their number. There must be some.

    Args:
        session: the job's own session.
        tombstones: the deleted keys.
        table: their table, one row per key.
        keys: the key columns.
    """
    pairs = f"{sql_path(tombstones)} AS t USING {sql_path(table)} AS s ON {_has_returned(keys)}"
    return int(session.sql(f"MERGE INTO {pairs} WHEN MATCHED THEN DELETE").collect()[0]["num_deleted_rows"])


def _has_returned(keys: Sequence[str]) -> str:
    same_key = " AND ".join(f"t.`{key}` = s.`{key}`" for key in keys)
    return f"{same_key} AND struct(s._sequence, s._source_hash) > struct(t._sequence, t._source_hash)"


def delete_tombstones(session: SparkSession, path: LakePath, keys: Sequence[str], upto: int) -> int:
    """Delete the tombstones that batches up to `upto` wrote, in one commit; return their number.

    The tombstone of a truncate, which has no key, stays; so do those of a source that had a stream of its own.
    """
    has_a_key = " OR ".join(f"`{key}` IS NOT NULL" for key in keys)
    of_batches = f"`_stream` = '{ONE_STREAM}' AND `_batch_seq` <= {upto}"
    rows = session.sql(f"DELETE FROM {sql_path(path)} WHERE {of_batches} AND ({has_a_key})").collect()
    return int(rows[0]["num_affected_rows"])

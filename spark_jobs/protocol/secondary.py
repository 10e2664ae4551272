"""Secondary writes: quarantine and tombstone rows derived from a committed batch.

A table whose folder was removed and that was built anew is another one, by its id: what the earlier one has left in
the folders beside it takes no part. Tombstones have a folder for each id, rows of the quarantine name it.

They come after the main commit, from the same pinned sources, under the same batch_seq as their own txn: written before
it, they were lost when the batch was planned again (ADR 0002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from include.contracts.lake_path import LakePath
from include.control.log.batch import Winner
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, commit_anyway
from spark_jobs.delta_io.tables import OpenSession, TableShape, committed_txn, ensure_table, sql_text
from spark_jobs.protocol.batches import commit_conf

Write = Callable[[SparkSession], None]

TABLE_ID = "_table_id"
"""The column that says which table a row is about."""


def about(table_id: str) -> str:
    """SQL that is true for the rows about one table.

    >>> about("5b0e")
    "`_table_id` = '5b0e'"
    """
    return f"`{TABLE_ID}` = {sql_text(table_id)}"


@dataclass(frozen=True)
class SecondaryTable:
    """A table beside a medallion table that follows its batches.

    Attributes:
        name: `<layer>_<kind>.<name>`.
        path: its folder.
        shape: its columns.
    """

    name: str
    path: LakePath
    shape: TableShape


def write_once(open_session: OpenSession, table: SecondaryTable, winner: Winner, write: Write) -> None:
    """Run `write` as the secondary write of the batch, unless it was done before.

    `write` makes one commit on the session that it is given.

    Raises:
        ConflictError: it lost to other writers too often; the batch's next run tries again.
    """
    app_id = winner.intent.app_id_beside(table.name)
    if committed_txn(table.path, app_id) >= winner.batch_seq:
        return
    ensure_table(open_session, table.path, table.shape)
    conf = {**commit_conf(winner.intent), "spark.databricks.delta.write.txnAppId": app_id}
    with open_session(conf) as session:
        commit_anyway(Contest(table.name), WriteKind.BESIDE, table.path, lambda: write(session))

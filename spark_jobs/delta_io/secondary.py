"""Secondary writes: quarantine and tombstone rows derived from a committed batch.

They come after the main commit, from the same pinned sources, under the same batch_seq as their own txn: written before
it, they were lost when the batch was planned again (ADR 0002).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from include.contracts.lake_path import LakePath
from include.control.batch import Winner
from spark_jobs.delta_io.batches import commit_conf
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, commit_anyway
from spark_jobs.delta_io.tables import OpenSession, TableShape, committed_txn, ensure_table

Write = Callable[[SparkSession], None]


@dataclass(frozen=True)
class SecondaryTable:
    """A table beside a medallion table that follows its batches.

    Attributes:
        name: `<layer>_<kind>.<name>`.
        path: its folder.
        shape: its columns.
        addable: those of them that are added to a table of an earlier version.
    """

    name: str
    path: LakePath
    shape: TableShape
    addable: frozenset[str] = frozenset()

    def app_id(self, stream: str) -> str:
        """Delta's application id of the rows that come from one stream of the main table."""
        return f"millrace/{self.name}/{stream}"


def write_once(open_session: OpenSession, table: SecondaryTable, winner: Winner, write: Write) -> None:
    """Run `write` as the secondary write of the batch, unless it was done before.

    `write` makes one commit on the session that it is given.

    Raises:
        ConflictError: it lost to other writers too often; the batch's next run tries again.
    """
    app_id = table.app_id(winner.intent.stream)
    if committed_txn(table.path, app_id) >= winner.batch_seq:
        return
    ensure_table(open_session, table.path, table.shape, table.addable)
    conf = {**commit_conf(winner.intent), "spark.databricks.delta.write.txnAppId": app_id}
    with open_session(conf) as session:
        commit_anyway(Contest(table.name), WriteKind.BESIDE, table.path, lambda: write(session))

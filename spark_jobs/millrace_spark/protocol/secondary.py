"""Secondary writes: quarantine and tombstone rows derived from a committed batch.

They come after the main commit, from the same pinned sources, with the batch's number in a txn of their own. Written
before the main commit, they were lost when the batch was planned again (ADR 0002).

A table that is created again in a removed folder gets a new table id. Rows that the earlier table left in quarantine
and tombstones are ignored: each id has its own tombstone folder, and each quarantine row names its table id.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import SparkSession

from millrace.contracts.lake_path import LakePath
from millrace.control.log.batch import Winner
from millrace.control.log.followed_tables import newest_table
from millrace_spark.delta_io.conflict_policy import WriteKind
from millrace_spark.delta_io.contest import Contest, retry_until_committed
from millrace_spark.delta_io.tables import OpenSession, TableShape, committed_txn, ensure_table
from millrace_spark.protocol.batches import commit_conf
from millrace_spark.transforms.sql_texts import sql_text

Write = Callable[[SparkSession], None]

TABLE_ID = "_table_id"
"""The column with the id of the table that a row belongs to."""


def belongs_to(table_id: str) -> str:
    """Return an SQL condition that holds for the rows of one table.

    >>> belongs_to("5b0e")
    "`_table_id` = '5b0e'"
    """
    return f"`{TABLE_ID}` = {sql_text(table_id)}"


@dataclass(frozen=True)
class SecondaryTable:
    """The quarantine or tombstone table of a medallion table.

    Attributes:
        name: `<layer>_<kind>.<name>`.
        path: its folder.
        shape: its columns.
    """

    name: str
    path: LakePath
    shape: TableShape


def write_once(open_session: OpenSession, table: SecondaryTable, winner: Winner, write: Write) -> None:
    """Run `write` as the secondary write of the batch, unless its commit is in the log already.

    Args:
        open_session: opens a separate session.
        table: the table to write to.
        winner: the committed batch.
        write: makes one commit on the session that it is given.

    Raises:
        ConflictError: other writers won too often; the next run of the batch tries again.
    """
    app_id = winner.intent.secondary_app_id(table.name)
    if committed_txn(table.path, app_id) >= winner.batch_seq:
        return
    ensure_table(open_session, table.path, table.shape)
    conf = {**commit_conf(winner.intent), "spark.databricks.delta.write.txnAppId": app_id}
    known = newest_table(table.path).version
    with open_session(conf) as session:
        contest, kind = Contest(table.name), WriteKind.SECONDARY
        retry_until_committed(contest, kind, table.path, lambda: write(session), known)

"""A writer of batches of three rows to a real table without Spark; tests choose what happens at each write."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from deltalake import DeltaTable

from millrace.contracts.job.report import FileRows, RowCounts
from millrace.contracts.spec.common_settings import DEFAULT_CONFLICTS, ConflictSpec
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, StreamPosition, Winner
from millrace.paths import LakehousePaths
from millrace_spark.protocol.batches import BatchPlan, BatchRequest, BatchResult, BatchWriter, Closing
from tests.support.ledger.delta_tables import append, commit, create_table, day, intent_of

ORDERS = Stream("bronze.orders")
FILE = FileFact(path="a.json", size=9, mtime_ns=1, checksum="aa")


Conf = dict[str, str]


class ThreeRows:
    """A batch of three rows; each write first calls the next function of `before`, and afterwards one of `after`."""

    def __init__(self, table: Path) -> None:
        self.table = table
        self.before: list[Callable[[], None]] = []
        self.after: list[Callable[[], None]] = []
        self.left = 1
        self.rows = RowCounts(read=3, applied=3, inserted=3)
        self.intents: list[Intent] = []
        self.closed: list[Winner] = []
        self.positions: list[StreamPosition] = []

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        self.positions.append(position)
        return BatchPlan(BatchSources(files=1), (FILE,)) if self.left else None

    def write(self, session: Conf, intent: Intent, plan: BatchPlan) -> None:
        self.intents.append(intent)
        if self.before:
            self.before.pop(0)()
        txn = session["spark.databricks.delta.write.txnAppId"], int(session["spark.databricks.delta.write.txnVersion"])
        if (DeltaTable(str(self.table)).transaction_version(txn[0]) or 0) >= txn[1]:
            return  # Delta skips such a write silently
        append(self.table, 3, txn=txn, user_metadata=session["spark.databricks.delta.commitInfo.userMetadata"])
        self.left -= 1
        if self.after:
            self.after.pop(0)()

    def close(self, winner: Winner) -> Closing:
        self.closed.append(winner)
        return Closing(self.rows, {"a.json": FileRows(read=3, written=3)})


class ThreeRowLake:
    """A table, its ledger, and a writer for its next batch."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.table = LakehousePaths(root).table("bronze.orders")
        self.table_id = create_table(self.table)
        self.ledger = Ledger(LakehousePaths(root))
        self.work = ThreeRows(self.table)
        self.sessions: list[Conf] = []
        self.now = day().end

    def writer(self, limits: ConflictSpec = DEFAULT_CONFLICTS) -> BatchWriter:
        request = BatchRequest(self.table, ORDERS, day(), "manual__1", "5bec", lambda: self.now)
        return BatchWriter(request, self.work, self.ledger, self._open_session, limits)

    def run(self, limits: ConflictSpec = DEFAULT_CONFLICTS) -> BatchResult:
        return self.writer(limits).run_unleased()

    def commit_by_other_writer(self, batch_seq: int) -> Winner:
        return commit(self.table, intent_of(self.table_id, batch_seq, stream=ORDERS), rows=3)

    @contextmanager
    def _open_session(self, conf: Conf) -> Iterator[Conf]:
        self.sessions.append(conf)
        yield conf

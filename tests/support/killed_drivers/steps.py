"""The steps of a batch in the order of the commit protocol, and the steps that a batch has done."""

from __future__ import annotations

from enum import StrEnum

from millrace.catalog import load_catalog
from millrace.contracts.lake_path import LakePath
from millrace.control.gates.gates import Gates
from millrace.control.ledger.events import BatchEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import Commit, commits_after
from millrace.control.log.stored_tables import is_table
from millrace_spark.delta_io.tables import committed_txn
from tests.support.lakehouse import Lakehouse


class Step(StrEnum):
    """The steps of a batch, in their order; a driver that dies has done the first of them."""

    INTENT = "intent"
    COMMIT = "commit"
    RECORDED = "recorded"
    QUARANTINE = "quarantine"
    TOMBSTONES = "tombstones"
    CLOSED = "closed"
    CERTIFICATE = "certificate"


_NOT_IN_LAYER = {"bronze": {Step.TOMBSTONES}, "silver": set[Step](), "gold": {Step.TOMBSTONES, Step.QUARANTINE}}


def steps_of(table: str) -> list[Step]:
    """Return the steps of a batch of `table`: bronze has no tombstones, and gold refuses no row."""
    return [step for step in Step if step not in _NOT_IN_LAYER[table.partition(".")[0]]]


def steps_done(lakehouse: Lakehouse, table: str, batch_seq: int) -> list[Step]:
    """Return the steps that a batch has done, from the logs and the ledger alone."""
    paths, secondary = lakehouse.paths, dict[Step, tuple[LakePath, str]]()
    of_table = table_id(paths.table(table)) if is_table(paths.table(table)) else ""
    beside = {
        Step.QUARANTINE: ("quarantine", paths.quarantine(table)),
        Step.TOMBSTONES: ("tombstones", paths.tombstones(table, of_table)),
    }
    for step, (name, path) in beside.items():
        secondary[step] = (path, f"millrace/{table.replace('.', f'_{name}.')}/{of_table}/main")
    events = Ledger(paths)._batches.events(table)
    recorded = {row["event"] for row in events if row["batch_seq"] == batch_seq}
    commits = [commit for commit in commits_after(paths.table(table), -1) if numbers(commit) == [batch_seq]]
    suite = load_catalog(lakehouse.folder / "tables").spec(table).suite_hash
    done = {
        Step.INTENT: BatchEvent.INTENT in recorded,
        Step.COMMIT: len(commits) == 1,
        Step.RECORDED: BatchEvent.COMMITTED in recorded,
        **{step: committed_txn(path, app_id) >= batch_seq for step, (path, app_id) in secondary.items()},
        Step.CLOSED: BatchEvent.CLOSED in recorded,
        Step.CERTIFICATE: any(Gates(paths).result(table, commit.version, suite) for commit in commits),
    }
    return [step for step in steps_of(table) if done[step]]


def numbers(commit: Commit) -> list[int]:
    """Return the txnVersions of a commit: the number of its batch, or none."""
    return list(commit.txns.values())

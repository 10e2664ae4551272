"""The row counts of a batch whose driver died after the commit, if not all of its records can be read again.

The brokers may have deleted messages since, and a landing file may kill each driver that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millrace.contracts.counted import counted
from millrace.control.log.batch import Winner
from millrace_spark.delta_io.row_writes import replaced_rows
from millrace_spark.delta_io.tables import committed_txn
from millrace_spark.layers.quarantined import quarantined_of_files
from millrace_spark.protocol.batches import BatchPlan
from millrace_spark.protocol.quarantine import quarantine_of
from millrace_spark.runtime.context import JobContext


@dataclass(frozen=True)
class ReadAgain:
    """What can be read again of a batch whose driver died after the commit.

    Attributes:
        plan: its plan without the messages and the files that cannot be read again.
        lost: path of such a file -> why.
        finds_rescued: whether to look for the values that it has rescued.
    """

    plan: BatchPlan
    lost: Mapping[str, str] = field(default_factory=dict)
    finds_rescued: bool = True


def counts_with_lost(
    context: JobContext, winner: Winner, again: ReadAgain, counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the row counts of a batch, and note which records it has refused that nobody can read any more.

    Args:
        context: the job's.
        winner: the batch; its accepted rows are in the table.
        again: what can be read of it.
        counts: the rows `read`, `quarantined` and `dropped` of the records that are left.
    """
    table, offsets = winner.intent.table, again.plan.sources.offsets
    written, _ = replaced_rows(context.paths.table(table), winner.version)
    quarantine, quarantined = quarantine_of(table, context.paths), counts["quarantined"]
    if committed_txn(quarantine.path, winner.intent.secondary_app_id(quarantine.name)) >= winner.batch_seq:
        quarantined = quarantined_of_files(quarantine.path, winner).total()
    elif again.lost:
        files = ", ".join(f"{path} ({why})" for path, why in again.lost.items())
        context.notes.append(
            f"records that were refused are in no quarantine: the driver of batch {winner.batch_seq} died after its "
            f"commit, and these files cannot be read again: {files}; accepted rows are in the table"
        )
    known = written + quarantined + counts["dropped"]
    gone = {
        f"{topic}/{partition}": (first, offsets[topic][partition][0])
        for topic, partitions in winner.intent.sources.offsets.items()
        for partition, (first, _) in partitions.items()
        if first < offsets[topic][partition][0]
    }
    if gone and (refused := counts["read"] + sum(start - first for first, start in gone.values()) - known):
        ranges = ", ".join(f"{where} offsets {first} to {start - 1}" for where, (first, start) in gone.items())
        context.notes.append(
            f"up to {counted(refused, 'message')} that were refused are in no quarantine: the driver of batch "
            f"{winner.batch_seq} died after its commit, and the brokers have deleted {ranges} since"
        )
    return {"read": known, "quarantined": quarantined, "dropped": counts["dropped"]}

"""The row counts of a batch whose driver died after the commit, if not all of its records can be read again.

The brokers may have deleted messages since, and a landing file may kill each driver that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from millrace.contracts.counted import counted
from millrace.control.log.batch import Winner
from millrace_spark.delta_io.row_writes import replaced_rows
from millrace_spark.delta_io.tables import committed_txn
from millrace_spark.layers.quarantined import quarantined_of_files
from millrace_spark.protocol.batches import BatchPlan
from millrace_spark.protocol.quarantine import quarantine_of
from millrace_spark.runtime.context import JobContext


def counts_with_lost(
    context: JobContext, winner: Winner, whole: BatchPlan, left: BatchPlan, counts: Mapping[str, int]
) -> dict[str, int]:
    """Return the row counts of a batch, and note which records it has refused that nobody can read any more.

    Args:
        context: the job's.
        winner: the batch; its accepted rows are in the table.
        whole: its plan.
        left: its plan without the messages that are gone, and without the files that kill.
        counts: the rows `read`, `quarantined` and `dropped` of the records that are left.
    """
    table = winner.intent.table
    written, _ = replaced_rows(context.paths.table(table), winner.version)
    quarantine, quarantined = quarantine_of(table, context.paths), counts["quarantined"]
    if committed_txn(quarantine.path, winner.intent.secondary_app_id(quarantine.name)) >= winner.batch_seq:
        quarantined = quarantined_of_files(quarantine.path, winner).total()
    elif killers := [file.path for file in whole.files if file not in left.files]:
        context.notes.append(
            f"records of {', '.join(killers)} that were refused are in no quarantine: the driver or its Spark died "
            f"whenever it read them again to close batch {winner.batch_seq}; the accepted rows are in the table; have "
            "corrections delivered under another name"
        )
    known = written + quarantined + counts["dropped"]
    gone = {
        f"{topic}/{partition}": (first, left.sources.offsets[topic][partition][0])
        for topic, partitions in whole.sources.offsets.items()
        for partition, (first, _) in partitions.items()
        if first < left.sources.offsets[topic][partition][0]
    }
    if gone and (refused := counts["read"] + sum(start - first for first, start in gone.values()) - known):
        ranges = ", ".join(f"{where} offsets {first} to {start - 1}" for where, (first, start) in gone.items())
        context.notes.append(
            f"up to {counted(refused, 'message')} that were refused are in no quarantine: the driver of batch "
            f"{winner.batch_seq} died after its commit, and the brokers have deleted {ranges} since"
        )
    return {"read": known, "quarantined": quarantined, "dropped": counts["dropped"]}

"""Keep the log of a table, also if no batch comes: its properties, a checkpoint, and no commits that nobody needs.

Each batch sets the properties as well. Those that differ have changed in the spec since the last batch, or another
system has set them.
"""

from __future__ import annotations

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.maintenance.health import TableHealth, beside_folders, table_health
from millrace.control.maintenance.log_files import clean_log, expired_commits, read_commits, write_checkpoint
from millrace.control.maintenance.maintained import keep_maintained
from millrace.errors import Outcome
from millrace_spark.delta_io.tables import apply_properties
from millrace_spark.layers.maintenance.maintenance import (
    LeasedTable,
    maintenance_conf,
    maintenance_report,
    require_table,
    table_work,
)
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main


def run(context: JobContext) -> JobReport:
    """Do for the table, its quarantine and its tombstones what they need, under the table's lease.

    Spark is only started for a property. Nothing is committed if none differs: that would send writers back to plan.

    Raises:
        NotReadyError: there is no table yet.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    require_table(context)
    health, done, work = _measured(context), list[str](), None
    details = {"properties": {change.key: change.declared for change in health.properties}}
    due = [
        *(f"change {change}" for change in health.properties),
        *(f"write a checkpoint: {reason}" for reason in filter(None, [read_commits(health.without_checkpoint)])),
        *(f"clean the log: {reason}" for reason in filter(None, [expired_commits(health.uncleaned)])),
    ]
    if due and not context.args.dry_run:
        with table_work(context, "SET TBLPROPERTIES") as work, work.leased():
            done = _maintain(context, work)
    message = "; ".join(done) or (f"would {'; '.join(due)}" if due and not work else "its log is in order")
    return maintenance_report(
        context, Job.TABLE_LOG, Outcome.COMMITTED if done else Outcome.NO_OP, message, details, work=work
    )


def _measured(context: JobContext) -> TableHealth:
    health = table_health(context.spec, context.catalog, context.ops, context.now())
    assert health is not None, "the table was there"
    return health


def _maintain(context: JobContext, work: LeasedTable) -> list[str]:
    """Do what the table needs now that this run has the lease, and return it in words."""
    health = _measured(context)
    folders = {"": work.path, **beside_folders(work.table, health.maintained.table_id, context.paths)}
    if health.properties:
        with context.open_session(maintenance_conf(context)) as session:
            apply_properties(session, work.path, health.properties)
    done = [change.done for change in health.properties]
    for name, log in health.without_checkpoint.items():
        write_checkpoint(folders[name])
        done.append(f"{f'{name}: ' if name else ''}wrote a checkpoint after {counted(log.after_checkpoint, 'commit')}")
    # What the commits say of maintenance is stored before they go.
    keep_maintained(context.ops, work.table)
    for name, log in _measured(context).uncleaned.items():
        clean_log(folders[name], log)
        done.append(f"{f'{name}: ' if name else ''}deleted {counted(log.expired_commits, 'expired commit')}")
    return done


if __name__ == "__main__":
    main(Job.TABLE_LOG, run)

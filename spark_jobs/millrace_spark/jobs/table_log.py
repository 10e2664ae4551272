"""Set the properties of a table as its spec says, also if no batch comes: each batch would set them as well.

They are those that the spec has changed since the last batch, and those that another system has set otherwise.
"""

from __future__ import annotations

from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport
from millrace.control.changes.table_properties import PropertyChange, changes_of_properties
from millrace.control.log.stored_tables import open_table
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
    """Set the properties that are not as the spec says, in one commit, or in two if some are removed.

    Spark is only started if one differs: a commit without need would send writers back to plan again.

    Raises:
        NotReadyError: there is no table yet.
        ConflictError: the lease was not free in time, or writers without a lease committed first too often.
    """
    require_table(context)
    changes, work = _changes(context), None
    if changes and not context.args.dry_run:
        with table_work(context, "SET TBLPROPERTIES") as work, work.leased():
            changes = _set_properties(context, work)
    outcome, done = Outcome.NO_OP, "its properties are as its spec says"
    if changes and work:
        outcome, done = Outcome.COMMITTED, "; ".join(change.done for change in changes)
    elif changes:
        done = f"would change {'; '.join(map(str, changes))}"
    details = {"properties": {change.key: change.declared for change in changes}}
    return maintenance_report(context, Job.TABLE_LOG, outcome, done, details, work=work)


def _changes(context: JobContext) -> list[PropertyChange]:
    delta = open_table(context.paths.table(context.spec.table), without_files=True)
    return changes_of_properties(context.spec, delta, context.ops.specs)


def _set_properties(context: JobContext, work: LeasedTable) -> list[PropertyChange]:
    """Set the properties, unless another run did so before this one got the lease; return what was changed."""
    if changes := _changes(context):
        with context.open_session(maintenance_conf(context)) as session:
            apply_properties(session, work.path, changes)
    return changes


if __name__ == "__main__":
    main(Job.TABLE_LOG, run)

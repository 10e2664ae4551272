"""Delete what a table keeps for a short time only, if a person approves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import APPROVE, SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from millrace.contracts.counted import in_bytes
from millrace.contracts.job.args import Job
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.time_format import SECOND

if TYPE_CHECKING:
    from airflow.sdk import Context

_MEASURED_AT = "measured_at"
"""The XCom with the time at which the question measured the table."""


class VacuumApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether VACUUM deletes the old files and the deleted keys of the table that the form names."""

    ui_color = "#d5d8e8"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide.

        Raises:
            AirflowFailException: there is nothing to delete, or something holds VACUUM back.
            TornLogError: a log cannot be read.
        """
        now = datetime.now(UTC)
        context["ti"].xcom_push(_MEASURED_AT, now.isoformat())
        return _question(context, now)


class ApprovedVacuumOperator(SparkJobOperator):
    """Delete what a person has approved; what else is past its retention by then goes too.

    The parameters are those of `SparkJobOperator`, without table.
    """

    ui_color = "#d5d8e8"
    job = Job.TABLE_VACUUM

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(table="{{ params.table }}", **kwargs)

    def execute(self, context: Context) -> Any:
        """Run the job in the name of the person who approved it.

        Raises:
            AirflowFailException: nobody approved this, or what was shown is not what there is to delete.
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        with leave_failure(self, context):
            measured_at = context["ti"].xcom_pull(task_ids=APPROVE, key=_MEASURED_AT)
            if not measured_at:
                raise AirflowFailException("Nobody approved this, and a person must.\nTrigger the DAG again.")
            # Whoever has changed the time changes the question, and nobody has approved that one.
            who = approved_by(context, _question(context, datetime.fromisoformat(measured_at)))
            allowed = f"{_asked_by(context)}, approved by {who}: {context['params']['why']}"
            interval = label_interval(run_dates(context), datetime.now(UTC))
            report = self.run_job_or_raise(context, interval, allow_deletes=allowed)
            self.log.info("%s", report.message)
            return TaskResult.of_report(report).of_table(self.table).to_xcom()


def _question(context: Context, at: datetime) -> Question:
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.catalog import load_catalog
    from millrace.control.maintenance.plan import planned_table
    from millrace.control.ops_tables import OpsTables

    settings, form = prepare_process(), context["params"]
    catalog, name = load_catalog(settings.tables), form["table"]
    table = planned_table(catalog.spec(name), catalog, OpsTables(settings.paths), at)
    if table is None or table.health.refusals:
        reason = table.reason if table else "it was never written"
        raise AirflowFailException(f"{name}: nothing is deleted: {reason}\nThe tab Storage of the table says more.")
    actions = [action for action in table.actions if action.step.deletes]
    if not actions:
        raise AirflowFailException(f"{name}: there is nothing to delete at {at:{SECOND}} UTC\nTry again later.")
    lines = [f"{action.step}, {in_bytes(action.size or 0)}: {action.reason}" for action in actions]
    readers = "; ".join(f"{reader} reads a version for {time}" for reader, time in table.health.outside.items())
    body = (
        quoted("\n".join(lines)),
        f"This was measured at {at:{SECOND}} UTC. Nobody can read or restore an earlier version than the oldest that "
        "stays. What else is past the retention when VACUUM runs goes too.",
        f"Readers outside of Millrace: {quoted(readers)}" if readers else "Millrace knows no reader outside.",
        f"Why, says {_asked_by(context)}: {quoted(form['why'])}",
        f"The Delta table is {quoted(table.health.maintained.table_id)}",
        "**Approve**: this is deleted. **Reject**: nothing changes.",
    )
    return Question(f"Delete old files of {name}?", "\n\n".join(body))


def _asked_by(context: Context) -> str:
    return who_asked(context) or "the trigger of this run"

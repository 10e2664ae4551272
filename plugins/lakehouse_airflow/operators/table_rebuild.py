"""Rebuild tables as a form says: a dry run reports the plan, then a person approves it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lakehouse_airflow.assets import REBUILT_TABLE, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.question import Question, quoted
from lakehouse_airflow.operators.second_person import SecondPersonApprovalOperator, approved_by, who_asked
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.waiting_task import places, waiting_task, what_follows
from millrace.contracts.asset_event import event_extra
from millrace.contracts.job.args import Job
from millrace.contracts.job.requests import RebuildRequest
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome

if TYPE_CHECKING:
    from airflow.sdk import Context


DRY_RUN, _PLAN = "dry_run", "plan"


class RebuildApprovalOperator(SecondPersonApprovalOperator):
    """Ask whether the plan that the run's task `DRY_RUN` has reported is carried out."""

    ui_color = "#d5d8e8"

    def question(self, context: Context) -> Question:
        """Return what a person must know to decide."""
        return _question(context)


class TableRebuildOperator(SparkJobOperator):
    """Rebuild the table of the form as approved, or report the plan; a rebuild that ended early is continued.

    The form's fields are Params of the run: `table`, `downstream`, `allow_deletes`, `allow_missing`,
    `allow_refused`, `why`, `task`. The parameters are those of `SparkJobOperator`, without table.

    :param is_dry_run: whether only to report the plan, for which nobody need have approved anything.
    """

    ui_color = "#d5d8e8"
    job = Job.TABLE_REBUILD

    def __init__(self, *, is_dry_run: bool, **kwargs: Any) -> None:
        super().__init__(table="{{ params.table }}", **kwargs)
        self.is_dry_run = is_dry_run

    def execute(self, context: Context) -> Any:
        """Run the job, and announce the tables' new versions; a dry run returns the plan.

        Raises:
            AirflowFailException: nobody approved this plan, or the job would do something else by now.
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        with leave_failure(self, context):
            return self._rebuild(context)

    def _rebuild(self, context: Context) -> Any:
        form = context["params"]
        asked_by = _asked_by(context)
        who = "" if self.is_dry_run else f", approved by {approved_by(context, _question(context))}"
        request = RebuildRequest(
            downstream=bool(form["downstream"]),
            allow_deletes=bool(form["allow_deletes"]),
            allow_missing=bool(form["allow_missing"]),
            allow_refused=bool(form["allow_refused"]),
            plan="" if self.is_dry_run else _plan(context),
            said_by=f"{asked_by}{who}",
            why=str(form["why"]),
        )
        interval = label_interval(run_dates(context), datetime.now(UTC))
        report = self.run_job_or_raise(context, interval, dry_run=self.is_dry_run, request=request)
        self.log.info("%s", report.message)
        if self.is_dry_run:
            return {_PLAN: report.for_people}
        if report.outcome is Outcome.COMMITTED:
            from millrace.control.log.delta_log import read_commit

            for table, version in report.details["tables"].items():
                commit = read_commit(prepare_process().paths.table(table), version)
                extra = event_extra(table, version, "rebuilt", commit.interval if commit else None)
                context["outlet_events"][REBUILT_TABLE].add(table_asset(table), extra=extra)
        return TaskResult.of_report(report).to_xcom()


def _question(context: Context) -> Question:
    form, waiting = context["params"], waiting_task(context)
    allowed = {
        "allow_deletes": "It may delete any number of keys that earlier snapshots lack.",
        "allow_refused": "It lets the new table pass, though its gate has refused it.",
        "allow_missing": "It goes on without loaded landing files that do not exist any more.",
    }
    body = (
        quoted(_plan(context)),
        *(text for field, text in allowed.items() if form[field]),
        f"Why, says {_asked_by(context)}: {quoted(form['why'])}",
        places(form["table"], waiting),
        f"**Approve**: the rows are replaced. {what_follows(waiting) if waiting else ''} **Reject**: nothing changes.",
    )
    return Question(f"Rebuild {form['table']}?", "\n\n".join(body))


def _plan(context: Context) -> str:
    """Return what the dry run has reported. It may have been edited since: the job compares it with its own plan."""
    return str(context["ti"].xcom_pull(task_ids=DRY_RUN)[_PLAN])


def _asked_by(context: Context) -> str:
    return who_asked(context) or "the trigger of this run"

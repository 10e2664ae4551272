"""Builds tables anew as a form asks for it: first it is said what that means, then a person approves it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.contracts.job.args import Job, JobArgs
from include.contracts.job.rebuild_request import RebuildRequest
from include.errors import Outcome
from lakehouse_airflow.assets import REBUILT_TABLE, table_asset
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.operators.second_person import approved_by, who_asked
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableRebuildOperator(SparkJobOperator):
    """Build the table of the form anew, or say what that would do; a try that ended early is gone on with.

    The form's fields are Params of the run: `table`, `downstream`, `allow_deletes`, `allow_missing`, `why`. Parameters
    are those of `SparkJobOperator`, but for job and table.

    :param approval_task_id: the task in which somebody approved it; without one it only says what it would do.
    """

    ui_color = "#d5d8e8"

    def __init__(self, *, approval_task_id: str | None = None, **kwargs: Any) -> None:
        super().__init__(job=Job.TABLE_REBUILD, table="{{ params.table }}", **kwargs)
        self.approval_task_id = approval_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job, and tell whoever reads the tables of their new versions; a dry run gives what is to be asked.

        Raises:
            AirflowFailException: nobody approved it.
            AirflowFailException, MillraceError, AirflowException: as `SparkJobOperator.execute`.
        """
        form, is_dry = context["params"], self.approval_task_id is None
        asked_by = who_asked(context) or "the trigger of this run"
        who = f", approved by {approved_by(context, self.approval_task_id)}" if self.approval_task_id else ""
        self._request = RebuildRequest(
            downstream=bool(form["downstream"]),
            allow_deletes=bool(form["allow_deletes"]),
            allow_missing=bool(form["allow_missing"]),
            said_by=f"{asked_by}{who}",
            why=str(form["why"]),
        )
        interval = label_interval(run_dates(context), datetime.now(UTC))
        report = self.run_job_or_raise(context, interval, dry_run=is_dry)
        self.log.info("%s", report.message)
        if is_dry:
            said = [report.message, f"Why, says {asked_by}: **{form['why']}**", *report.notes]
            return {"subject": f"Build {self.table} anew?", "body": "\n\n".join(said)}
        if report.outcome is Outcome.COMMITTED:
            for table, version in report.details["tables"].items():
                context["outlet_events"][REBUILT_TABLE].add(table_asset(table), extra={"version": version})
        return TaskResult.of_report(report).to_xcom()

    def complete_args(self, arguments: JobArgs) -> JobArgs:
        """The arguments with the file that says what is asked for."""
        path: Path = arguments.report.with_suffix(".request.json")
        return arguments.model_copy(update={"request": self._request.save(path)})

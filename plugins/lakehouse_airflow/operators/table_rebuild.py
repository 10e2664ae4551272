"""Builds tables anew as a form asks for it: first it is said what that means, then a person approves it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from include.contracts.job_args import Job, JobArgs
from include.contracts.rebuild_request import RebuildRequest
from include.errors import Outcome
from lakehouse_airflow.assets import REBUILT_TABLE, table_asset
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult

if TYPE_CHECKING:
    from airflow.sdk import Context


class TableRebuildOperator(SparkJobOperator):
    """Build the table of the form anew, or say what that would do; a try that ended early is gone on with.

    The form's fields are Params of the run: `table`, `downstream`, `allow_missing`, `why`. Parameters are those of
    `SparkJobOperator`, but for job and table.

    :param dry_run: only say what it would do.
    """

    ui_color = "#d5d8e8"

    def __init__(self, *, dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(job=Job.TABLE_REBUILD, table="{{ params.table }}", **kwargs)
        self.dry_run = dry_run

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the job, and tell whoever reads the tables of their new versions; a dry run gives what is to be asked.

        Raises:
            AirflowFailException, MillraceError, AirflowException: as `SparkJobOperator.execute`.
        """
        form, run = context["params"], context["dag_run"]
        self._request = RebuildRequest(
            downstream=bool(form["downstream"]),
            allow_missing=bool(form["allow_missing"]),
            said_by=str(getattr(run, "triggering_user_name", None) or f"DAG {run.dag_id}"),
            why=str(form["why"]),
        )
        interval = label_interval(run_dates(context), datetime.now(UTC))
        report = self.run_well(context, interval, dry_run=self.dry_run)
        self.log.info("%s", report.message)
        if self.dry_run:
            said = [report.message, f"Why, says {self._request.said_by}: **{self._request.why}**", *report.notes]
            return {"subject": f"Build {self.table} anew?", "body": "\n\n".join(said)}
        if report.outcome is Outcome.COMMITTED:
            for table, version in report.details["tables"].items():
                context["outlet_events"][REBUILT_TABLE].add(table_asset(table), extra={"version": version})
        return TaskResult.of_report(report).to_xcom()

    def finished_args(self, arguments: JobArgs) -> JobArgs:
        """The arguments with the file that says what is asked for."""
        path: Path = arguments.report.with_suffix(".request.json")
        return arguments.model_copy(update={"request": self._request.save(path)})

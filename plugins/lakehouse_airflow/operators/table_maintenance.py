"""Maintain a table: join small files, remove those that no version needs any more, verify the rows of a gold table."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import MOST_TIME
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.spec.table_spec import GoldSpec

if TYPE_CHECKING:
    from airflow.sdk import Context

    from millrace.settings import Settings


class TableMaintenanceOperator(SparkJobOperator):
    """Run a maintenance job for a table that exists; the interval only labels its report.

    :param job: `Job.TABLE_LOG` sets properties and keeps the log short, `Job.TABLE_OPTIMIZE` joins small files,
        `Job.TABLE_VACUUM` removes files that no version needs, `Job.TABLE_VERIFY` compares the groups of a gold table
        with a computation from scratch.
    :param is_dry_run: whether only to report what the job would do. By default OPTIMIZE does its work, and for VACUUM
        the run's Param `vacuum_dry_run` decides; without that Param VACUUM only reports.
    :param sample: of how many values of `refresh_by` a verification compares the groups; 0 for all.
    :param step: what the job does, for the name of a mapped task.

    The others are those of `SparkJobOperator`.
    """

    ui_color = "#d5d8e8"

    def __init__(
        self, *, job: Job | str, is_dry_run: bool | None = None, sample: int = 0, step: str = "", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.sample = sample
        self.job = Job(job)
        self.step = step
        self.is_dry_run = is_dry_run

    def execute(self, context: Context) -> Any:
        """Maintain the table.

        Raises:
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.control.log.delta_log import latest_version

        settings = prepare_process()
        if latest_version(settings.paths.table(self.table)) < 0:
            self.log.info("%s does not exist yet: nothing to maintain; no Spark is started", self.table)
            return TaskResult.of_nothing(f"{self.table} does not exist yet").of_table(self.table).to_xcom()
        if self.job is Job.TABLE_VERIFY and (reason := self._why_not_to_verify(settings)):
            self.log.info("%s: nothing to compare; no Spark is started", reason)
            return TaskResult.of_nothing(reason).of_table(self.table).to_xcom()
        interval = label_interval(run_dates(context), datetime.now(UTC))
        dry_run = self.is_dry_run
        if dry_run is None:
            dry_run = self.job is Job.TABLE_VACUUM and bool(context["params"].get("vacuum_dry_run", True))
        report = self.run_job_or_raise(context, interval, dry_run=dry_run, sample=self.sample)
        return TaskResult.of_report(report).of_table(self.table).to_xcom()

    def _why_not_to_verify(self, settings: Settings) -> str:
        """Return why there is nothing to compare; empty if there is."""
        from millrace.catalog import load_catalog
        from millrace.control.maintenance.verification_due import why_not_due
        from millrace.control.ops_tables import OpsTables

        catalog = load_catalog(self.spec_folder(settings))
        spec = catalog.spec(self.table)
        return why_not_due(spec, catalog, OpsTables(settings.paths)) if isinstance(spec, GoldSpec) else ""


class PlannedMaintenanceOperator(TableMaintenanceOperator):
    """Do one action of the plan, as a mapped task: its arguments are data, and so none of them is a template.

    :param most_time: after this time since the start of the run it does nothing: the next run goes on.

    The others are those of `TableMaintenanceOperator`.
    """

    template_fields: Sequence[str] = ()

    def __init__(self, *, most_time: timedelta = MOST_TIME, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.most_time = most_time

    def execute(self, context: Context) -> Any:
        """Do the action.

        Raises:
            AirflowSkipException: the time of the run is over.
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
        """
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.control.maintenance.maintained import keep_maintained
        from millrace.control.ops_tables import OpsTables

        now, began = datetime.now(UTC), context["dag_run"].start_date
        if began and now - began > self.most_time:
            raise AirflowSkipException(f"The run began {self.most_time} ago or earlier: the next one goes on")
        keep_maintained(OpsTables(prepare_process().paths), self.table, planned_at=now)
        return super().execute(context)

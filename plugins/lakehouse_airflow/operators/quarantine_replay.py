"""Replays quarantined rows as a form asks for it; a dry run says what would become of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from include.contracts.interval import Interval
from include.contracts.job.args import Job, JobArgs
from include.contracts.job.quarantine_request import QuarantineRequest
from include.contracts.job.report import JobReport
from include.contracts.row_status import RowStatus
from include.errors import Outcome
from include.paths import LakehousePaths
from lakehouse_airflow.assets import REPLAYED_TABLE, table_asset
from lakehouse_airflow.hooks.store_access import task_settings
from lakehouse_airflow.operators.quarantine_form import request_of
from lakehouse_airflow.operators.second_person import approved_by
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.control.quarantine.rows import QuarantinedRow

_SHOWN = 50


class QuarantineReplayOperator(SparkJobOperator):
    """Replay the quarantined rows that the form of the run names; no Spark is started where none of them waits.

    The form's fields are Params of the run: `table`, `ids`, `reason`, `all_rows`, `set_column`, `set_how`, `set_value`,
    `set_by`, `set_values`, `why`, `dry_run`. None of them is read as SQL: whoever may trigger a DAG may not thereby run
    expressions in the driver.

    :param approval_task_id: the task in which somebody approved what the form changes, if it changes anything.
    Others are those of `SparkJobOperator`, but for job and table.
    """

    ui_color = "#e6e0c8"

    def __init__(self, *, approval_task_id: str, **kwargs: Any) -> None:
        super().__init__(job=Job.QUARANTINE_REPLAY, table="{{ params.table }}", **kwargs)
        self.approval_task_id = approval_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Run the replay, and tell whoever reads the table of its new version.

        Raises:
            AirflowFailException: the form does not say which rows, or what is mended in them; nobody approved that; or
                the gate refused the version that the replay made.
            MillraceError, AirflowException: as `SparkJobOperator.execute`.
        """
        self._request = self._approved(context, request_of(context))
        rows, interval = self._waiting()
        for row in rows[:_SHOWN]:
            self.log.info("%s %s, tried %s times: %s", row.id, row.status, row.attempts, "; ".join(row.reasons))
        self.log.info("%s: %s rows that wait in quarantine are meant", self.table, len(rows))
        if interval is None:
            return TaskResult.of_nothing(f"{self.table}: no row that waits in quarantine is meant").to_xcom()
        report = self.run_well(context, interval, dry_run=bool(context["params"]["dry_run"]))
        for row in report.details.get("rows", ()):
            # The row's values stay out: Airflow's logs are read by more people than the table.
            self.log.info("%s would be %s: %s", row["id"], row["fate"], "; ".join(row["reasons"]) or "it passes")
        self.log.info("%s", report.message)
        if any(check.refuses for check in report.checks):
            raise AirflowFailException(report.message)
        self._announce(context, report, interval)
        return TaskResult.of_report(report).to_xcom()

    def finished_args(self, arguments: JobArgs) -> JobArgs:
        """The arguments with the file that says which rows are meant."""
        path: Path = arguments.report.with_suffix(".request.json")
        return arguments.model_copy(update={"request": self._request.save(path)})

    def _approved(self, context: Context, request: QuarantineRequest) -> QuarantineRequest:
        """The request, with who approved its changes beside who asked for them."""
        if context["params"]["dry_run"] or not request.mends:
            return request
        who = approved_by(context, self.approval_task_id)
        return request.model_copy(update={"said_by": f"{request.said_by}, approved by {who}"})

    def _waiting(self) -> tuple[list[QuarantinedRow], Interval | None]:
        """The rows that are meant, and the interval to report them under; None where there is nothing to do."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from include.catalog import load_catalog
        from include.control.planning.replay_advice import replay_interval
        from include.control.quarantine.rows import SUMMARY, quarantined_rows
        from include.errors import SpecError

        settings = task_settings()
        paths = LakehousePaths(settings.root)
        try:
            spec = load_catalog(settings.tables).spec(self.table)
        except SpecError as wrong:
            raise AirflowFailException(str(wrong)) from None
        wanted = self._request.rows
        every = quarantined_rows(self.table, paths, wanted.model_copy(update={"statuses": tuple(RowStatus)}), SUMMARY)
        if unknown := sorted(set(wanted.ids) - {row.id for row in every}):
            raise AirflowFailException(f"{self.table} has no row {', '.join(unknown)} in quarantine: correct Ids.")
        rows = [row for row in every if row.status in wanted.statuses]
        return rows, replay_interval(spec, rows, paths)

    def _announce(self, context: Context, report: JobReport, interval: Interval) -> None:
        """Let DAGs that wait for the table run, where readers may use a newer version of it."""
        if report.outcome is Outcome.COMMITTED and report.certified_moved:
            told = {
                "interval_start": interval.start.isoformat(),
                "interval_end": interval.end.isoformat(),
                "version": report.certified_version,
                "rows": report.table_rows,
            }
            context["outlet_events"][REPLAYED_TABLE].add(table_asset(self.table), extra=told)

"""The base of all operators that run a job of the data plane for one table, and end as the job's report says."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator, BaseOperatorLink, RetryPolicy
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from lakehouse_airflow.hooks.driver_log import DriverLog
from lakehouse_airflow.hooks.forked_driver import ForkedDriver
from lakehouse_airflow.hooks.spark_job import SparkJobHook
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.retries import DEFAULT_POLICY, GOOD, RETRIES, RETRY_DELAY, error_of
from lakehouse_airflow.ui.links import FAILED_KEY, RunLink, TableLink
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import Job, JobArgs
from millrace.contracts.job.report import JobReport
from millrace.contracts.job.requests import RequestFile
from millrace.contracts.job.spans import DRIVER, TaskSpans, spans_line
from millrace.contracts.job.task_result import TaskResult
from millrace.disk_space import disk_full
from millrace.errors import ExitCode, Outcome
from millrace.paths import RunPaths
from millrace.run_retention import delete_old_runs
from millrace.settings import Settings
from millrace.spark_location import job_file

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakehouse_airflow.lineage.task_lineage import Lineage


class SparkJobOperator(BaseOperator):
    """Run a job of the data plane for one table; subclasses decide in `execute` whether, and for which interval.

    The Airflow connection alone says where Spark runs: spark-submit starts the job for `local[*]`, `spark://`, yarn and
    k8s; for `sc://` the job is a client of a warm server. The job's report, not its exit code or output, decides how
    the task ends. The type of the error decides whether Airflow retries it, and when; this works in any DAG, also for
    mapped tasks.

    :param table: the table, `<layer>.<name>`. (templated)
    :param first_day: the first UTC day for which there is data; None for no limit.
    :param last_day: the last UTC day with data; a scheduled run after it succeeds with a note, a manual one fails.
    :param conn_id: the Spark connection.
    :param conf: Spark properties of a submitted application; each option of spark-submit has one, such as
        `spark.driver.memory`. A warm server has its own. (templated)
    :param env_vars: further environment variables of the driver. (templated)
    :param retries: the largest number of retries.
    :param retry_delay: the delay before a retry for which `retry_policy` has none.
    :param retry_policy: which errors are retried, and when; `TypedRetryPolicy` has a back-off for each kind of error.
    """

    template_fields: Sequence[str] = ("table", "conf", "env_vars")
    ui_color = "#e7d9b8"
    operator_extra_links: Sequence[BaseOperatorLink] = (TableLink(), RunLink())
    job: Job
    """The job that the task runs."""

    # Of a mapped task, Airflow reads retries and policy from the defaults of this signature.
    def __init__(
        self,
        *,
        table: str,
        first_day: date | None = None,
        last_day: date | None = None,
        conn_id: str = "spark_default",
        conf: Mapping[str, Any] | None = None,
        env_vars: Mapping[str, str] | None = None,
        retries: int | None = RETRIES,
        retry_delay: timedelta | float = RETRY_DELAY,
        retry_policy: RetryPolicy | None = DEFAULT_POLICY,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, retry_policy=retry_policy, **kwargs)
        self.table = table
        self.first_day = first_day
        self.last_day = last_day
        self.conn_id = conn_id
        self.conf = conf
        self.env_vars = env_vars
        self.application = ""
        self.application_args: list[str] = []
        self.large_load = False
        self.hook: SparkJobHook | None = None
        self.report: JobReport | None = None
        self.driver: ForkedDriver | None = None
        self.spans = TaskSpans()

    def note_start(self, context: Context) -> None:
        """Note how long the task took to start: Airflow's start of a process, and the parse of the DAG file."""
        self.spans.started(getattr(context["ti"], "start_date", None))

    def run_job_or_raise(
        self,
        context: Context,
        interval: Interval,
        *,
        dry_run: bool = False,
        request: RequestFile | None = None,
        sample: int = 0,
        allow_deletes: str = "",
    ) -> JobReport:
        """Run the job and return its report, if it ended well.

        Raises:
            AirflowFailException: a retry would end the same: bad input, or a refused version.
            MillraceError: not ready, a conflict, no Spark server: the retry policy decides how long to wait.
            AirflowException: the job failed for another reason.
        """
        report = self.run_job(
            context, interval, dry_run=dry_run, request=request, sample=sample, allow_deletes=allow_deletes
        )
        if error := error_of(report, self._driver_log.path):
            raise error from None
        return report

    def run_job(
        self,
        context: Context,
        interval: Interval,
        *,
        dry_run: bool = False,
        request: RequestFile | None = None,
        sample: int = 0,
        allow_deletes: str = "",
    ) -> JobReport:
        """Run the job for `interval`, with the request that it reads, and return its report, however it ended.

        Raises:
            AirflowException: the driver wrote no report.
            DiskFullError: the driver could not write its report, because the disk is full.
            SparkUnavailableError: the Spark Connect server does not answer.
        """
        # Absolute paths: the driver runs in another folder.
        settings = prepare_process().absolute()
        delete_old_runs(settings)
        files = TryFiles.of(settings.run_paths, context["ti"])
        arguments = JobArgs(
            table=self.table,
            interval_start=interval.start,
            interval_end=interval.end,
            run_id=context["run_id"],
            root=settings.root,
            landing=settings.landing,
            tables=self.spec_folder(settings),
            report=files.report,
            reprocess=wants_reprocess(context),
            dry_run=dry_run,
            request=request.save(files.report.with_suffix(".request.json")) if request else None,
            sample=sample,
            allow_deletes=allow_deletes,
        )
        self.application = job_file(self.job.application)
        self.application_args = arguments.to_argv()
        self._driver_log = DriverLog(files.driver_log)
        self.hook = SparkJobHook(
            conn_id=self.conn_id,
            name=f"millrace {self.table} {self.job}",
            application_args=self.application_args,
            conf=self.conf,
            env_vars=self.env_vars,
            driver_log=self._driver_log,
            jars_folder=settings.jars,
            large_load=self.large_load,
            driver=self.driver,
        )
        try:
            with self.spans.of(DRIVER):
                failure = self._run_driver(self.hook)
        finally:
            if request and request.has_values and arguments.request:
                arguments.request.unlink(missing_ok=True)
        report = JobReport.load(files.report)
        if report is None:
            raise self._missing_report(self.hook, failure, files.report) from None
        report = report.model_copy(update={"timings_s": self.spans.around(report.timings_s)})
        self.report = report
        with suppress(OSError):  # The disk is full; the log has the spans.
            report.save(files.report)
        counts = ", ".join(f"{count} {action}" for action, count in report.rows.model_dump().items() if count)
        if report.outcome not in GOOD:
            # The task returns nothing, but the page of its run shows what its job did.
            context["ti"].xcom_push(FAILED_KEY, TaskResult.of_report(report).of_table(self.table).to_xcom())
        version = "no version" if report.version is None else f"version {report.version}"
        self.log.info("rows: %s; %s; %s", counts or "none", version, spans_line(report.timings_s))
        for note in report.notes:
            self.log.warning("%s", note)
        if failure and report.outcome in GOOD:
            self.log.warning("The job ended well, but its driver did not: %s", failure)
        if report.outcome is Outcome.FAILED:
            self.log.error("The last lines of the driver:\n%s", self._driver_log.tail)
        return report

    def spec_folder(self, settings: Settings) -> Path:
        """Return the folder with the specs that the job reads."""
        return settings.tables

    def get_openlineage_facets_on_complete(self, ti: Any) -> Lineage:
        """Return what the task tells OpenLineage; its provider calls this when the task has ended, however it ended."""
        # Imported here, as below in subclasses: a task that sends no events must not load OpenLineage's client.
        from lakehouse_airflow.lineage.task_lineage import lineage_of_job

        return lineage_of_job(self.table, self.report, prepare_process())

    def on_kill(self) -> None:
        """End the driver and all its children, if it was started."""
        if self.hook is not None:
            self.hook.on_kill()

    def _run_driver(self, hook: SparkJobHook) -> str:
        """Run the driver to its end; return how its process failed, which the report overrules; empty if it did not."""
        self.log.info("The driver's whole output: %s", self._driver_log.path)
        try:
            hook.submit(self.application)
        except AirflowFailException:
            raise
        except AirflowException as failure:
            # The provider's own message is the whole command line, then the exit code.
            return str(failure) if hook.exit_code is None else f"exit code {hook.exit_code}"
        return ""

    def _missing_report(self, hook: SparkJobHook, failure: str, report: Path) -> Exception:
        how = "was stopped" if hook.was_stopped else "ended without a report"
        self.log.error("The last lines of the driver:\n%s", self._driver_log.tail)
        if hook.exit_code == ExitCode.DISK_FULL:
            return disk_full(self.table, report.parent)
        return AirflowException(
            f"{self.table}: the driver of {self.job} {how} ({failure or 'exit code 0'}). "
            f"Its whole output: {self._driver_log.path}"
        )


def wants_reprocess(context: Context) -> bool:
    """Whether the form or the backfill's configuration asks to read consumed rows again."""
    return bool(context["params"].get("reprocess", False))


_NOT_IN_NAMES = re.compile(r"[^\w.+=-]+")


@dataclass(frozen=True)
class TryFiles:
    """The files of one try of a task.

    Attributes:
        report: `<reports>/<dag>/<run>/<task>/<try>.json`, of a mapped task `<task>/<map index>/<try>.json`.
        driver_log: `<driver logs>/<dag>/<run>/<task>/<try>.log`, of a mapped task likewise.
    """

    report: Path
    driver_log: Path

    @classmethod
    def of(cls, paths: RunPaths, ti: Any) -> TryFiles:
        """Return the files of the task instance `ti`, after removing those of an earlier run with the same name."""
        names = [_NOT_IN_NAMES.sub("_", name) for name in (ti.dag_id, ti.run_id, ti.task_id)]
        mapped = [str(ti.map_index)] if ti.map_index >= 0 else []
        name = Path(*names, *mapped, str(ti.try_number))
        files = cls(paths.reports / f"{name}.json", paths.driver_logs / f"{name}.log")
        files.report.unlink(missing_ok=True)
        files.driver_log.unlink(missing_ok=True)
        return files

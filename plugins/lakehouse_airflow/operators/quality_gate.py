"""Decides whether a table's new version may be read, and tells other DAGs when it may."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from include.contracts.interval import Interval
from include.contracts.job.args import Job
from include.contracts.job.data_docs_args import JudgedVersion
from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import Severity
from include.errors import Outcome, SpecError
from include.paths import LakehousePaths
from lakehouse_airflow.assets import is_announced, table_asset
from lakehouse_airflow.hooks.store_access import task_settings
from lakehouse_airflow.operators.endings import error_of
from lakehouse_airflow.operators.gate_override import way_out
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult
from lakehouse_airflow.ui.links import JUDGED, DataDocsLink, OverrideLink

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.contracts.spec.table_spec import AnySpec


@dataclass(frozen=True)
class Verdict:
    """What the gate said of a version, by the writer's own result or by the gate's job.

    Attributes:
        version: the version that was judged.
        certified: the version that readers use now.
        passed: whether they may use the judged one.
        said: when not passed, one line for the person on call; by whose word, when a person let it pass.
        checks: what each rule said.
        suite_hash: digest of the rules.
    """

    version: int | None
    certified: int | None
    passed: bool
    said: str
    checks: tuple[CheckResult, ...]
    suite_hash: str


class QualityGateOperator(SparkJobOperator):
    """Let a table's new version pass, or fail and say which expectation refused it.

    The writer judges its version right after the commit, so that this task mostly only reads the result; the gate's
    own job runs where there is none for that version and the rules as they are now (a spec that was mended, say).
    A failed gate is never tried again. With the table's asset among its `outlets` it emits an asset event, and does
    so only when this run moved the certified version.

    :param writer_task_id: the task that wrote the table in the same run.

    The others are those of `SparkJobOperator`.
    """

    ui_color = "#c9dfc5"
    operator_extra_links = (DataDocsLink(), OverrideLink())

    def __init__(self, *, table: str, writer_task_id: str, **kwargs: Any) -> None:
        super().__init__(job=Job.QUALITY_GATE, table=table, **kwargs)
        self.writer_task_id = writer_task_id
        self.judged: JudgedVersion | None = None
        self.has_refused = False

    def execute(self, context: Context) -> dict[str, Any]:
        """Judge the version that the writer left.

        Raises:
            AirflowFailException: the version is refused; the first line says by what, what readers still see, and how
                a person lets it pass.
            MillraceError, AirflowException: as `SparkJobOperator.execute`, when the gate's own job ran.
        """
        interval = self.due_interval(context)
        if isinstance(interval, str):
            return self._nothing(interval)
        written = self._written(context)
        if written and written.version is None:
            return self._nothing(f"{self.table} has no version yet that could be judged")
        verdict = self._left_by(written) or self._judge(context, interval)
        self._say_what_was_judged(context, verdict)
        if not verdict.passed:
            self.has_refused = True
            said = f"{verdict.said} {way_out(self.table, verdict.version)}"
            self.log.error("%s", said)
            self._log_findings(verdict)
            raise AirflowFailException(said)
        self._log_findings(verdict)
        how = verdict.said or "passed"
        self.log.info("%s: version %s %s; readers use version %s", self.table, verdict.version, how, verdict.certified)
        self._announce(context, interval, verdict, written)
        return self._result(verdict, written).to_xcom()

    def _say_what_was_judged(self, context: Context, verdict: Verdict) -> None:
        """Leave what the Data Docs of the run are built from, however this task ends."""
        if verdict.version is not None:
            self.judged = JudgedVersion(table=self.table, version=verdict.version, suite_hash=verdict.suite_hash)
            context["ti"].xcom_push(JUDGED, self.judged.model_dump())

    def _log_findings(self, verdict: Verdict) -> None:
        for level, line in findings_in(verdict.checks):
            self.log.log(level, "%s", line)

    def _nothing(self, reason: str) -> dict[str, Any]:
        self.outlets = []
        return TaskResult.of_nothing(reason).to_xcom()

    def _written(self, context: Context) -> TaskResult | None:
        # Of a mapped writer each gate reads its own: what all of them left would be a list.
        left = context["ti"].xcom_pull(task_ids=self.writer_task_id, map_indexes=context["ti"].map_index)
        return TaskResult.model_validate(left) if left else None

    def _left_by(self, written: TaskResult | None) -> Verdict | None:
        """The verdict on the written version by the rules as they are now, if there is one."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from include.control.gates.gates import Gates

        if written is None or written.version is None:
            return None
        gates, rules = Gates(LakehousePaths(task_settings().root)), self._spec().suite_hash
        result = gates.result(self.table, written.version, rules)
        if result is None:
            return None
        said = str(result.override) if result.override else result.refused
        return Verdict(result.version, gates.certified(self.table), result.passed, said, result.checks, rules)

    def _spec(self) -> AnySpec:
        from include.catalog import load_catalog

        try:
            return load_catalog(task_settings().tables).spec(self.table)
        except SpecError as wrong:
            raise AirflowFailException(str(wrong)) from None

    def _judge(self, context: Context, interval: Interval) -> Verdict:
        """Run the gate's own job."""
        report = self.run_job(context, interval)
        if report.outcome is not Outcome.GATE_FAILED and (error := error_of(report, self._driver_log.path)):
            raise error from None
        passed = report.outcome is not Outcome.GATE_FAILED
        said = "" if passed else report.message
        rules = self._spec().suite_hash
        return Verdict(report.version, report.certified_version, passed, said, report.checks, rules)

    def _announce(self, context: Context, interval: Interval, verdict: Verdict, written: TaskResult | None) -> None:
        asset = table_asset(self.table)
        version = written.version if written else verdict.version
        if not self._is_of_this_run(context, version) or is_announced(context, asset, version):
            # Airflow makes an event for every outlet that a successful task names at its end.
            self.outlets = []
            return
        context["outlet_events"][asset].extra = {
            "interval_start": interval.start.isoformat(),
            "interval_end": interval.end.isoformat(),
            "version": version,
            "rows": dict(written.rows) if written else {},
            "batch_seq": written.batch_seq if written else None,
        }

    def _is_of_this_run(self, context: Context, version: int | None) -> bool:
        """Whether this very run committed `version`, as its commit says: a writer's retry finds only a no-op."""
        from include.control.log.delta_log import read_commit

        if version is None:
            return False
        commit = read_commit(LakehousePaths(task_settings().root).table(self.table), version)
        return commit is not None and commit.metadata.get("run_id") == context["run_id"]

    def _result(self, verdict: Verdict, written: TaskResult | None) -> TaskResult:
        return TaskResult(
            outcome=Outcome.NO_OP,
            message=f"version {verdict.version} {verdict.said or 'passed'}",
            batch_seq=written.batch_seq if written else None,
            version=verdict.version,
            certified_version=verdict.certified,
        )


def findings_in(checks: Iterable[CheckResult]) -> Iterable[tuple[int, str]]:
    """One line, with its level, for each check that failed, and for each that had nothing to be judged by."""
    for check in checks:
        if check.not_judged:
            yield logging.WARNING, f"not judged ({check.action}): {check.rule}: {check.not_judged}"
        elif not check.passed:
            rows = check.unexpected_rows
            found = check.error or (f"{rows} rows" if rows is not None else f"observed {check.observed}")
            line = f"failed ({check.action}): {check.rule}, {found}" + (f": {check.reason}" if check.reason else "")
            yield _LEVELS.get(check.severity, logging.ERROR), line


_LEVELS = {Severity.WARNING: logging.WARNING, Severity.INFO: logging.INFO}
"""Severity -> the level in the log; anything else is an error."""

"""Decide whether readers may use a table's new version, and trigger other DAGs if they may."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from include.contracts.interval import Interval
from include.contracts.job.args import CheckedVersion, Job
from include.contracts.job.report import CheckResult
from include.contracts.spec.expectation import Severity
from include.errors import Outcome, SpecError
from lakehouse_airflow.assets import event_extra, is_announced, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.operators.gate_override import way_out
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult
from lakehouse_airflow.retries import error_of
from lakehouse_airflow.ui.links import (
    CHECKED_KEY,
    OVERRIDE_DAG_ID,
    DataDocsLink,
    OverrideLink,
    data_docs_path,
    form_path,
    url_of,
)

if TYPE_CHECKING:
    from airflow.sdk import Context

_LEVELS: dict[str, int] = {Severity.WARNING: logging.WARNING, Severity.INFO: logging.INFO}
"""Severity -> the level in the log; anything else is an error."""


@dataclass(frozen=True)
class GateDecision:
    """The gate's decision about a version, from the writer's own checks or from the gate's job.

    Attributes:
        version: the version that was checked.
        certified: the version that readers use now.
        passed: whether readers may use the checked version.
        message: if refused, one line for the person on call; if overridden, who let it pass.
        checks: the result of each rule.
        suite_hash: digest of the rules.
    """

    version: int | None
    certified: int | None
    passed: bool
    message: str
    checks: tuple[CheckResult, ...]
    suite_hash: str


class QualityGateOperator(SparkJobOperator):
    """Let a table's new version pass, or fail and say which expectation refused it.

    The writer checks its version right after the commit, so this task mostly only reads the result; the gate's own job
    runs if there is no result for this version and the present rules (after a change of the spec, for example).
    A failed gate is never retried. With the table's asset among its `outlets` the task emits an asset event, but only
    if this run moved the certified version.

    :param writer_task_id: the task that wrote the table in the same run.

    The others are those of `SparkJobOperator`.
    """

    ui_color = "#c9dfc5"
    operator_extra_links = (DataDocsLink(), OverrideLink())

    def __init__(self, *, table: str, writer_task_id: str, **kwargs: Any) -> None:
        super().__init__(job=Job.QUALITY_GATE, table=table, **kwargs)
        self.writer_task_id = writer_task_id
        self.checked: CheckedVersion | None = None
        self.has_refused = False

    def execute(self, context: Context) -> Any:
        """Check the version that the writer made.

        Raises:
            AirflowFailException: the version is refused; the first line says by which rule, what readers still see, and
                how a person lets it pass.
            MillraceError, AirflowException: as `run_job_or_raise`, if the gate's own job ran.
        """
        interval = self.due_interval(context)
        if isinstance(interval, str):
            return self._nothing(interval)
        # The gate of a mapped writer reads the result with its own index; without it the value would be a list.
        result = context["ti"].xcom_pull(task_ids=self.writer_task_id, map_indexes=context["ti"].map_index)
        written = TaskResult.model_validate(result) if result else None
        if written and written.version is None:
            return self._nothing(f"{self.table} has no version yet that could be checked")
        decision = self._writer_decision(written) or self._run_gate_job(context, interval)
        if decision.version is not None:
            # The Data Docs of the run are built from this, however the task ends.
            self.checked = CheckedVersion(table=self.table, version=decision.version, suite_hash=decision.suite_hash)
            context["ti"].xcom_push(CHECKED_KEY, self.checked.model_dump())
        if not decision.passed:
            self.has_refused = True
            message = f"{decision.message} {way_out(self.table, decision.version)}"
            self.log.error("%s: %s", interval.label, message)
        for level, line in findings_in(decision.checks):
            self.log.log(level, "%s", line)
        if not decision.passed:
            self._log_pages(context["ti"])
            raise AirflowFailException(message)
        how = decision.message or "passed"
        readers = f"readers use version {decision.certified}"
        self.log.info("%s: %s version %s %s; %s", interval.label, self.table, decision.version, how, readers)
        self._announce(context, interval, decision, written)
        return TaskResult(
            outcome=Outcome.NO_OP,
            message=f"version {decision.version} {how}",
            batch_seq=written.batch_seq if written else None,
            version=decision.version,
            certified_version=decision.certified,
        ).to_xcom()

    def _log_pages(self, ti: Any) -> None:
        """Log the addresses of the pages about the refusal: in a log they open beside it."""
        if self.checked is None:
            return
        table, version = self.checked.table, self.checked.version
        self.log.error("Data Docs: %s", url_of(data_docs_path(ti.dag_id, ti.run_id, table)))
        self.log.error("Gate override: %s", url_of(form_path(OVERRIDE_DAG_ID, table, version, ti)))

    def _nothing(self, reason: str) -> dict[str, Any]:
        self.outlets = []
        return TaskResult.of_nothing(reason).to_xcom()

    def _writer_decision(self, written: TaskResult | None) -> GateDecision | None:
        """Return the recorded decision about the written version by the present rules, if there is one."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from include.control.gates.gates import Gates

        if written is None or written.version is None:
            return None
        gates, rules = Gates(prepare_process().paths), self._suite_hash()
        result = gates.result(self.table, written.version, rules)
        if result is None:
            return None
        message = str(result.override) if result.override else result.refused
        return GateDecision(result.version, gates.certified(self.table), result.passed, message, result.checks, rules)

    def _suite_hash(self) -> str:
        """Return the digest of the table's present rules."""
        from include.catalog import load_catalog

        try:
            return load_catalog(prepare_process().tables).spec(self.table).suite_hash
        except SpecError as error:
            raise AirflowFailException(str(error)) from None

    def _run_gate_job(self, context: Context, interval: Interval) -> GateDecision:
        self.log.info("%s: %s has no result by the present rules: its gate's job runs", interval.label, self.table)
        report = self.run_job(context, interval)
        passed = report.outcome is not Outcome.GATE_FAILED
        if passed and (error := error_of(report, self._driver_log.path)):
            raise error from None
        message = "" if passed else report.message
        return GateDecision(
            report.version, report.certified_version, passed, message, report.checks, self._suite_hash()
        )

    def _announce(
        self, context: Context, interval: Interval, decision: GateDecision, written: TaskResult | None
    ) -> None:
        from include.control.log.delta_log import read_commit

        asset = table_asset(self.table)
        version = written.version if written else decision.version
        # The writer's result does not say whether this run committed the version: its retry reports a no-op.
        commit = None if version is None else read_commit(prepare_process().paths.table(self.table), version)
        is_of_this_run = commit is not None and commit.metadata.get("run_id") == context["run_id"]
        if not is_of_this_run or is_announced(context, asset, version):
            # Airflow emits an event for each outlet that a successful task has at its end.
            self.outlets = []
            return
        rows = dict(written.rows) if written else {}
        context["outlet_events"][asset].extra = event_extra(
            self.table,
            version,
            ", ".join(f"{count} rows {action}" for action, count in rows.items()) or "certified",
            interval,
            rows=rows,
            batch_seq=written.batch_seq if written else None,
        )


def findings_in(checks: Iterable[CheckResult]) -> Iterable[tuple[int, str]]:
    """Yield one line, with its level, for each check that failed or was not checked."""
    for check in checks:
        if check.not_judged:
            yield logging.WARNING, f"not checked ({check.action}): {check.rule}: {check.not_judged}"
        elif not check.passed:
            rows = check.unexpected_rows
            observed = check.error or (f"{rows} rows" if rows is not None else f"observed {check.observed}")
            line = f"failed ({check.action}): {check.rule}, {observed}" + (f": {check.reason}" if check.reason else "")
            yield _LEVELS.get(check.severity, logging.ERROR), line

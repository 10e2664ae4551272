"""Decide whether readers may use a table's new version, and trigger other DAGs if they may."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import interval_asset, is_announced, outlets_with_events, table_asset
from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import label_interval, run_dates
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.gate_decision import GateDecision, findings_in
from lakehouse_airflow.operators.gate_override import is_restored, may_be_overridden, way_out
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.retries import error_of
from lakehouse_airflow.ui.links import (
    CHECKED_KEY,
    OVERRIDE_DAG_ID,
    DataDocsLink,
    OverrideLink,
    RunLink,
    TableLink,
    data_docs_path,
    form_path,
    url_of,
)
from millrace.contracts.asset_event import batch_extra, partition_key
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import CheckedVersion, Job
from millrace.contracts.job.spans import VERDICT, spans_line
from millrace.contracts.job.task_result import TaskResult
from millrace.errors import Outcome, SpecError
from millrace.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakehouse_airflow.lineage.task_lineage import Lineage
    from millrace.contracts.spec.table_spec import AnySpec


class QualityGateOperator(SparkJobOperator):
    """Let a table's new version pass, or fail and say which expectation refused it.

    The version is the one that a `TableWriteOperator` upstream has written in the same run; without one, that of the
    table's last batch; of a table that another tool writes, the newest version with other rows. The writer checks its
    version right after the commit, so this task mostly only reads the result; the gate's own job runs if there is no
    result for this version and the present rules (after a change of the spec, for example).

    A failed gate is never retried. With `table_asset` or `interval_asset` of the table among its `outlets` the task
    emits an event of each, but only if this run committed the version, or, without a writer upstream, if no event has
    announced it. The outlets of a mapped gate name the assets of all its tables; each task emits its own.

    :param specs: the folder with the table's spec, if it is not among those of `LAKEHOUSE_TABLES`: a table that another
        tool writes has its spec in a folder of its own, so that no run of Millrace writes it. (templated)

    The others are those of `SparkJobOperator`.
    """

    template_fields: Sequence[str] = (*SparkJobOperator.template_fields, "specs")
    ui_color = "#c9dfc5"
    operator_extra_links = (TableLink(), RunLink(), DataDocsLink(), OverrideLink())
    job = Job.QUALITY_GATE

    def __init__(self, *, table: str, specs: str = "", **kwargs: Any) -> None:
        super().__init__(table=table, **kwargs)
        self.specs = specs
        self.checked: CheckedVersion | None = None
        self.decision: GateDecision | None = None
        self.may_be_overridden = False

    def execute(self, context: Context) -> Any:
        """Check the version.

        Raises:
            AirflowFailException: the version is refused; the first line says by which rule, what readers still see, and
                how a person lets it pass.
            MillraceError, AirflowException: as `run_job_or_raise`, if the gate's own job ran.
        """
        self.note_start(context)
        with leave_failure(self, context):
            return self._check(context)

    def _check(self, context: Context) -> Any:
        written = self._written(context)
        interval = label_interval(run_dates(context), datetime.now(UTC))
        if written and written.version is None:
            return self._nothing(interval, f"there is no version to check: {written.message}")
        version = written.version if written else self._newest_version()
        if version is None:
            return self._nothing(interval, f"{self.table} has no version yet that could be checked")
        with self.spans.of(VERDICT):
            recorded = self._recorded_decision(version)
        decision = recorded or self._run_gate_job(context, interval)
        self.decision = decision
        if decision.version is not None:
            # The Data Docs of the run are built from this, however the task ends.
            self.checked = CheckedVersion(table=self.table, version=decision.version, suite_hash=decision.suite_hash)
            context["ti"].xcom_push(CHECKED_KEY, self.checked.model_dump())
        how = decision.message or "passed"
        if decision.passed:
            readers = f"readers use version {decision.certified}"
            self.log.info("%s: %s version %s %s; %s", interval.label, self.table, decision.version, how, readers)
        else:
            message = self._later_version(decision)
            self.may_be_overridden = not message and may_be_overridden(self.table, decision.version, self.specs)
            message = message or f"{decision.message} {way_out(self.table, decision.version, self.specs)}"
            self.log.error("%s: %s", interval.label, message)
        for level, line in findings_in(decision.checks):
            self.log.log(level, "%s", line)
        if not decision.passed:
            self._log_pages(context["ti"])
            raise AirflowFailException(message)
        self._announce(context, interval, written.version if written else decision.version, written)
        if recorded:
            self.log.info("%s", spans_line(self.spans.seconds))
        return TaskResult(
            outcome=Outcome.NO_OP,
            message=f"version {decision.version} {how}",
            batch_seq=written.batch_seq if written else None,
            version=decision.version,
            certified_version=decision.certified,
            seconds=self.report.timings_s if self.report else self.spans.seconds,
        ).to_xcom()

    def get_openlineage_facets_on_complete(self, ti: Any) -> Lineage:
        """Return the version that the task checked, with the result of each rule."""
        from lakehouse_airflow.lineage.task_lineage import lineage_of_gate

        settings = prepare_process()
        return lineage_of_gate(self.table, self.spec_folder(settings), self.decision, settings)

    def spec_folder(self, settings: Settings) -> Path:
        """Return the folder that has the table's spec."""
        return Path(self.specs).absolute() if self.specs else settings.tables

    def _later_version(self, decision: GateDecision) -> str:
        """Return what a person can do if a later version is certified by now; empty if none is."""
        if decision.version is None or decision.certified is None or decision.certified <= decision.version:
            return ""
        if is_restored(self.table, decision.version):
            return ""
        return (
            f"{self.table}: version {decision.version} was refused, but readers use version {decision.certified} by "
            "now, which contains its batches\n"
            "To continue this run, clear the task that writes the table, with the tasks after it."
        )

    def _log_pages(self, ti: Any) -> None:
        """Log the addresses of the pages about the refusal: in a log they open beside it."""
        if self.checked is None:
            return
        table, version = self.checked.table, self.checked.version
        self.log.error("Data Docs: %s", url_of(data_docs_path(ti.dag_id, ti.run_id, table)))
        if self.may_be_overridden:
            self.log.error("Gate override: %s", url_of(form_path(OVERRIDE_DAG_ID, ti, table, version=version)))

    def _nothing(self, interval: Interval, reason: str) -> dict[str, Any]:
        self.log.info("%s: %s", interval.label, reason)
        self.outlets = outlets_with_events(self.outlets, [])
        return TaskResult.of_nothing(reason).to_xcom()

    def _written(self, context: Context) -> TaskResult | None:
        """Return the result of the task that wrote the table upstream in the same run, mapped or not."""
        values = context["ti"].xcom_pull(task_ids=sorted(self.upstream_task_ids))
        of_table = [value for value in values if isinstance(value, dict) and value.get("table") == self.table]
        return TaskResult.model_validate(of_table[-1]) if of_table else None

    def _newest_version(self) -> int | None:
        """Return the version of the last batch, or of the newest rows of a table without batches; None without any."""
        # Imported here, as below: parsing a DAG file must not load the Delta reader.
        from millrace.control.ledger.ledger import Ledger
        from millrace.control.log.delta_log import newest_change
        from millrace.control.planning.stream_positions import stream_position

        paths = prepare_process().paths
        position = stream_position(self._spec(), paths, Ledger(paths))
        if position is None:
            return None
        return position.last.version if position.last else newest_change(paths.table(self.table))

    def _recorded_decision(self, version: int) -> GateDecision | None:
        """Return the recorded decision about the version by the present rules, if there is one."""
        from millrace.control.gates.gates import Gates

        gates, rules = Gates(prepare_process().paths), self._spec().suite_hash
        result = gates.result(self.table, version, rules)
        if result is None:
            return None
        message = str(result.override) if result.override else result.refused
        return GateDecision(result.version, gates.certified(self.table), result.passed, message, result.checks, rules)

    def _spec(self) -> AnySpec:
        from millrace.catalog import load_catalog

        try:
            return load_catalog(self.spec_folder(prepare_process())).spec(self.table)
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
            report.version, report.certified_version, passed, message, report.checks, self._spec().suite_hash
        )

    def _announce(self, context: Context, interval: Interval, version: int | None, written: TaskResult | None) -> None:
        from millrace.control.log.delta_log import read_commit

        commit = None if version is None else read_commit(prepare_process().paths.table(self.table), version)
        batch = commit.metadata if commit else {}
        # The writer's result does not say whether this run committed the version: its retry reports a no-op.
        is_own = batch.get("run_id") == context["run_id"] if written else commit is not None
        keyed = interval_asset(self.table)
        new = [
            asset
            for asset in (table_asset(self.table), keyed)
            if is_own and asset in self.outlets
            if not is_announced(context, asset, version, by_any_run=written is None)
        ]
        self.outlets = outlets_with_events(self.outlets, new)
        if commit and commit.interval:
            interval = commit.interval
        rows = written.rows if written else {}
        for asset in new:
            context["outlet_events"][asset].extra = batch_extra(
                self.table, version, interval, rows, batch_seq=batch.get("batch_seq")
            )
        if keyed in new:
            context["outlet_events"][keyed].add_partitions(partition_key(interval))

"""Write new data into a table; without new data, no Spark is started."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from lakehouse_airflow.assets import MAY_PROPOSE_COLUMNS, PROPOSED_COLUMNS
from lakehouse_airflow.hooks.forked_driver import ForkedDriver
from lakehouse_airflow.hooks.spark_job import uses_connect_server
from lakehouse_airflow.hooks.store_access import may_fork, prepare_process
from lakehouse_airflow.intervals import due_interval
from lakehouse_airflow.landing_wait import LandingWait, WaitsForLanding
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.operators.spark_job import SparkJobOperator, wants_reprocess
from lakehouse_airflow.retries import error_of
from lakehouse_airflow.ui.links import DeleteApprovalLink, RebuildLink, RunLink, TableLink
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import WRITER_OF_LAYER, Job
from millrace.contracts.job.spans import PLAN
from millrace.contracts.job.task_result import TaskResult
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.errors import HOPELESS, MillraceError, MisfitError, NotDeliveredError, Outcome
from millrace.spark_conf import LARGE_LOAD

if TYPE_CHECKING:
    from airflow.sdk import Context

    from lakehouse_airflow.lineage.task_lineage import Lineage
    from millrace.control.planning.advice import Advice


class TableWriteOperator(WaitsForLanding, SparkJobOperator):
    """Write one batch of a table: plan in the worker, and run the writer only if the plan finds something to do.

    :param deferrable: whether a bronze task whose landing files are late waits for them in Airflow's triggerer, as
        `source.wait` of the spec says; if not, `retry_policy` decides when it looks again. A backfill does not wait.
        A waiting task counts for `max_active_tis_per_dag`: with both, it keeps the other runs of its table waiting.

    The others are those of `SparkJobOperator`.
    """

    operator_extra_links = (TableLink(), RunLink(), DeleteApprovalLink(), RebuildLink())

    asks_at_source_version: int | None = None
    """The version of the source at which the task stopped, because a person must allow its deletes."""

    is_misfit = False
    """Whether the task stopped because only a rebuild makes the table fit its spec."""

    @property
    def job(self) -> Job:  # type: ignore[override]
        """The writer of the table's layer."""
        return WRITER_OF_LAYER[self.table.partition(".")[0]]

    def __init__(self, *, deferrable: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.deferrable = deferrable

    def execute(self, context: Context) -> Any:
        """Write the new data of the run's interval; a run without new data succeeds with the last batch.

        Raises:
            AirflowFailException, MillraceError, AirflowException: as `run_job_or_raise`.
            TaskDeferred: the task waits for landing files.
        """
        self.note_start(context)
        with leave_failure(self, context):
            return self.attempt(context, until=None)

    def attempt(self, context: Context, until: datetime | None) -> Any:
        """Do the same; `until` is when a wait that has begun must end."""
        interval = due_interval(context, self.table, self.first_day, self.last_day)
        if isinstance(interval, str):
            self.log.info("%s: %s", self.table, interval)
            return TaskResult.of_nothing(interval).of_table(self.table).to_xcom()
        self.log.info("%s for %s (UTC)", self.table, interval.label)
        # Before the plan: delta-rs does not work in a fork of a process that has used it.
        self.driver = ForkedDriver.start() if may_fork() and uses_connect_server(self.conn_id) else None
        try:
            return self._write(context, interval, until)
        finally:
            if self.driver is not None:
                self.driver.end()

    def _write(self, context: Context, interval: Interval, until: datetime | None) -> Any:
        with self.spans.of(PLAN):
            advice = self._advice(context, interval, until)
        for note in advice.notes:
            self.log.warning("%s", note)
        if advice.nothing_new:
            self.log.info("%s: nothing new: %s; no Spark is started", self.table, advice.message)
            return self._nothing_new(advice)
        self.log.info("%s: %s", self.table, advice.message)
        self.large_load = advice.bytes >= LARGE_LOAD
        report = self.run_job(context, interval)
        if error := error_of(report, self._driver_log.path):
            self._note_question(report.outcome, report.error_class)
            raise error from None
        self._announce_new_columns(context)
        return TaskResult.of_report(report).of_table(self.table).to_xcom()

    def _nothing_new(self, advice: Advice) -> dict[str, Any]:
        result = TaskResult(
            outcome=Outcome.NO_OP,
            message=advice.message,
            table=self.table,
            batch_seq=advice.batch_seq,
            version=advice.version,
            certified_version=advice.certified_version,
            seconds=self.spans.seconds,
        )
        return result.to_xcom()

    def get_openlineage_facets_on_complete(self, ti: Any) -> Lineage:
        """Return the sources and the table, with the lineage of its columns and what the task has written."""
        from lakehouse_airflow.lineage.task_lineage import lineage_of_write

        return lineage_of_write(self.table, self.report, ti.run_id, prepare_process())

    def _announce_new_columns(self, context: Context) -> None:
        """Trigger the DAG that asks people, if the table has new fields that nobody was asked about yet."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.control.ledger.new_columns import ColumnState, NewColumns

        if MAY_PROPOSE_COLUMNS not in self.outlets:
            return
        proposed = NewColumns(prepare_process().paths).of(self.table, ColumnState.PROPOSED)
        if proposed:
            context["outlet_events"][MAY_PROPOSE_COLUMNS].add(
                PROPOSED_COLUMNS, extra={"table": self.table, "columns": [column.name for column in proposed]}
            )

    def _note_question(self, outcome: Outcome, error_class: str) -> None:
        """Keep what a person must decide before the task can go on: its links lead to the form."""
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.control.ledger.deletes import DeleteRecords

        if outcome is Outcome.DELETES_REFUSED:
            pending = DeleteRecords(prepare_process().paths).pending_deletes(self.table)
            self.asks_at_source_version = pending[-1].source_version if pending else None
        self.is_misfit = error_class == MisfitError.__name__

    def _advice(self, context: Context, interval: Interval, until: datetime | None) -> Advice:
        """Return what the run would do; wait for landing files that are not there, or too young, but not after `until`.

        Args:
            context: the context of the task.
            interval: the interval of the run.
            until: when a wait that has begun must end; None if none has begun.
        """
        # Imported here: parsing a DAG file must not load the Delta reader.
        from millrace.catalog import load_catalog
        from millrace.control.planning.planner import Planner

        settings = prepare_process()
        try:
            catalog = load_catalog(settings.tables)
            spec = catalog.spec(self.table)
            advice = Planner(catalog, settings).advise(spec, interval, reprocess=wants_reprocess(context))
        except NotDeliveredError as missing:
            if not (self.deferrable and isinstance(spec, BronzeSpec)):
                raise
            wait = LandingWait.of(spec, interval, context, until)
            if wait.is_over:
                raise AirflowFailException(wait.failure(missing)) from None
            wait.defer(self, settings, str(missing))
        except MillraceError as error:
            self._note_question(error.outcome, type(error).__name__)
            if error.outcome not in HOPELESS:
                raise
            raise AirflowFailException(str(error)) from None
        if self.deferrable and isinstance(spec, BronzeSpec) and advice.young_files and not advice.has_new_data:
            wait = LandingWait.of(spec, interval, context, until)
            if not wait.is_over:
                wait.defer(self, settings, advice.message)
        return advice

"""Writes what is new into a table; where nothing is, no Spark is started."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowFailException

from include.contracts.interval import Interval
from include.errors import BadInputError, SpecError
from include.settings import Settings
from lakehouse_airflow.operators.job_call import wants_reprocess
from lakehouse_airflow.operators.spark_job import SparkJobOperator
from lakehouse_airflow.operators.task_result import TaskResult

if TYPE_CHECKING:
    from airflow.sdk import Context

    from include.control.planner import Advice


class TableWriteOperator(SparkJobOperator):
    """Write one batch of a table: plan in the worker, and run the writer only where the plan finds something to do.

    Parameters are those of `SparkJobOperator`.
    """

    def execute(self, context: Context) -> dict[str, Any]:
        """Write what is new for the run's interval; a run with nothing new succeeds with the last batch.

        Raises:
            AirflowFailException, MillraceError, AirflowException: as `SparkJobOperator.execute`.
        """
        interval = self.due_interval(context)
        if isinstance(interval, str):
            return TaskResult.of_nothing(interval).to_xcom()
        advice = self._advice(context, interval)
        for note in advice.notes:
            self.log.warning("%s", note)
        if advice.nothing_new:
            self.log.info("%s: nothing new for %s: %s; no Spark is started", self.table, interval, advice.message)
            return TaskResult.of_advice(advice).to_xcom()
        self.log.info("%s: %s", self.table, advice.message)
        return TaskResult.of_report(self.run_well(context, interval)).to_xcom()

    def _advice(self, context: Context, interval: Interval) -> Advice:
        # Imported here: parsing a DAG file must not load the Delta reader.
        from include.catalog import load_catalog
        from include.control.planner import advise

        settings = Settings()
        try:
            catalog = load_catalog(settings.tables)
            spec = catalog.spec(self.table)
            return advise(spec, catalog, interval, settings, reprocess=wants_reprocess(context))
        except (SpecError, BadInputError) as wrong:
            raise AirflowFailException(str(wrong)) from None

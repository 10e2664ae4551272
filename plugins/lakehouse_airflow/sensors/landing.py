"""Wait until the landing files of a table are delivered."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow.sdk import RetryPolicy
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.intervals import due_interval
from lakehouse_airflow.landing_wait import LandingWait, WaitsForLanding
from lakehouse_airflow.left_failure import leave_failure
from lakehouse_airflow.retries import DEFAULT_POLICY, RETRIES, RETRY_DELAY
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.errors import NotDeliveredError, SpecError

if TYPE_CHECKING:
    from airflow.sdk import Context


class LandingSensor(WaitsForLanding):
    """Wait for the landing folder of the run's interval, in Airflow's triggerer: without a worker or a slot of a pool.

    Tasks after it begin when the files are there. `source.wait` of the spec says how long it waits, and how often it
    looks; in a backfill it looks once.

    :param table: the bronze table that loads the files. (templated)
    :param first_day: the first UTC day for which there is data; None for no limit. It waits for no other day.
    :param last_day: the last UTC day with data; None for no limit.
    :param soft_fail: whether the task is skipped, not failed, if the files do not come.
    :param retries: the largest number of retries, if the storage does not answer.
    :param retry_delay: the delay before a retry for which `retry_policy` has none.
    :param retry_policy: which errors are retried, and when.
    """

    template_fields: Sequence[str] = ("table",)
    ui_color = "#e7d9b8"

    # Of a mapped task, Airflow reads retries and policy from the defaults of this signature.
    def __init__(
        self,
        *,
        table: str,
        first_day: date | None = None,
        last_day: date | None = None,
        soft_fail: bool = False,
        retries: int | None = RETRIES,
        retry_delay: timedelta | float = RETRY_DELAY,
        retry_policy: RetryPolicy | None = DEFAULT_POLICY,
        **kwargs: Any,
    ) -> None:
        super().__init__(retries=retries, retry_delay=retry_delay, retry_policy=retry_policy, **kwargs)
        self.table = table
        self.first_day = first_day
        self.last_day = last_day
        self.soft_fail = soft_fail

    def execute(self, context: Context) -> None:
        """Look for the folder, and wait if it is not there.

        Raises:
            TaskDeferred: the task waits.
            AirflowFailException: the folder did not come in time; or the table has no landing files, or a wrong spec.
            AirflowSkipException: it did not come in time, and `soft_fail` is set.
            NotReadyError, StorageError: the storage does not answer, or refuses.
        """
        with leave_failure(self, context):
            self.attempt(context, until=None)

    def attempt(self, context: Context, until: datetime | None) -> None:
        """Do the same; `until` is when a wait that has begun must end."""
        # Imported here: parsing a DAG file must read neither specs nor folders.
        from millrace.control.landing.landing import interval_files, landing_of

        interval = due_interval(context, self.table, self.first_day, self.last_day)
        if isinstance(interval, str):
            self.log.info("%s: %s", self.table, interval)
            return
        settings, spec = prepare_process(), self._spec()
        try:
            interval_files(spec, landing_of(spec.landing_source.landing, settings.landing), interval)
        except NotDeliveredError as missing:
            wait = LandingWait.of(spec, interval, context, until)
            if not wait.is_over:
                wait.defer(self, settings, str(missing))
            kind = AirflowSkipException if self.soft_fail else AirflowFailException
            raise kind(wait.failure(missing)) from None
        self.log.info("%s: the files for %s are there", self.table, interval.label)

    def _spec(self) -> BronzeSpec:
        from millrace.catalog import load_catalog

        try:
            spec = load_catalog(prepare_process().tables).spec(self.table)
        except SpecError as error:
            raise AirflowFailException(str(error)) from None
        if not isinstance(spec, BronzeSpec) or spec.reads_kafka:
            raise AirflowFailException(f"{self.table} loads no landing files: name a bronze table that does.")
        return spec

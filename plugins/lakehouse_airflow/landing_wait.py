"""How long a task waits for the landing files of its interval, and what it says if they do not come."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import TaskDeferralTimeout

from lakehouse_airflow.intervals import BACKFILL, run_dates
from lakehouse_airflow.left_failure import leave_failure
from millrace.clock import utc_now
from millrace.contracts.interval import Interval
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.errors import NotDeliveredError, StorageError
from millrace.settings import Settings

if TYPE_CHECKING:
    from airflow.sdk import Context

_GRACE = timedelta(minutes=10)
"""After this time Airflow itself ends a wait that no triggerer has ended."""

_NO_TRIGGERER = """No triggerer has looked for the landing files: does `airflow triggerer` run?
A TableWriteOperator that is not deferrable needs none: it looks at each retry."""


@dataclass(frozen=True)
class LandingWait:
    """The wait of one task for the landing files of its interval.

    Attributes:
        source: the source of the table.
        interval: the interval of the run.
        begin: the present time.
        until: when the wait ends.
        is_backfill: whether the run is one of a backfill, which does not wait: the other days would wait with it.
    """

    source: LandingSource
    interval: Interval
    begin: datetime
    until: datetime
    is_backfill: bool

    @classmethod
    def of(cls, spec: BronzeSpec, interval: Interval, context: Context, until: datetime | None) -> LandingWait:
        """Return the wait of the task of `context`; `until` is when a wait that has begun must end."""
        now, is_backfill = utc_now(), run_dates(context).run_type == BACKFILL
        timeout = timedelta() if is_backfill else spec.landing_source.wait.timeout
        return cls(spec.landing_source, interval, now, until or now + timeout, is_backfill)

    @property
    def is_over(self) -> bool:
        """Whether there is no time left."""
        return self.begin >= self.until

    def failure(self, missing: NotDeliveredError) -> str:
        """Return what the task says when the wait is over."""
        cause, _, ways_out = str(missing).partition("\n")
        limit = "a backfill does not wait" if self.is_backfill else f"source.wait.timeout is {self.source.wait.timeout}"
        return f"{cause} ({limit})\n{ways_out}\nWhen it has delivered, clear this task with the tasks after it."

    def defer(self, task: BaseOperator, settings: Settings, reason: str) -> NoReturn:
        """Let the task wait in the triggerer, which calls its method `execute_complete` at the end.

        Args:
            task: the task.
            settings: the places of the lakehouse, as the worker knows them.
            reason: what the task waits for, for its log.

        Raises:
            TaskDeferred: always; Airflow catches it.
        """
        # Imported here: parsing a DAG file needs no trigger, and must not load what lists folders.
        from lakehouse_airflow.triggers.landing import LandingTrigger
        from millrace.control.landing.landing import interval_folder

        wait = self.source.wait
        task.log.info(
            "%s\nWaits for the files in the triggerer until %s UTC; the triggerer looks every %s.",
            reason,
            f"{self.until:%Y-%m-%d %H:%M}",
            wait.poke_interval,
        )
        trigger = LandingTrigger(
            feed=self.source.landing,
            folder=interval_folder(self.source, self.interval),
            root=settings.landing,
            # This worker has just looked; and it would load none of the files that are there, because of their age.
            first_look=self.begin + max(wait.poke_interval, self.source.min_age),
            poke_interval=wait.poke_interval.total_seconds(),
            until=self.until,
            s3_connection=settings.s3_connection,
        )
        task.defer(trigger=trigger, method_name="execute_complete", timeout=self.until - self.begin + _GRACE)


class WaitsForLanding(BaseOperator):
    """The part of an operator that waits for landing files: how it goes on after the wait."""

    @abstractmethod
    def attempt(self, context: Context, until: datetime | None) -> Any:
        """Do the task, or wait, but not after `until`, which is None before the first wait."""

    def execute_complete(self, context: Context, event: Mapping[str, str]) -> Any:
        """Do the task after a wait, by the event of its trigger.

        Raises:
            StorageError: the triggerer may not read the landing folder.
        """
        if refused := event["refused"]:
            raise StorageError(refused, "The triggerer cannot read it: it needs the same access as the workers.")
        return self.attempt(context, until=datetime.fromisoformat(event["until"]))

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        """Do the task also if Airflow has ended the wait, because no triggerer has."""
        with leave_failure(self, context):
            try:
                return super().resume_execution(next_method, next_kwargs, context)
            except TaskDeferralTimeout:
                self.log.error("%s", _NO_TRIGGERER)
                return self.attempt(context, until=utc_now())

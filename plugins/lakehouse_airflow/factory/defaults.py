"""What all DAGs of the factory share: pool, priorities, retries, the form's fields."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param

from lakehouse_airflow.retries import RETRIES, TypedRetryPolicy

POOL = "spark"
"""The machine's Spark capacity; set-up creates it. Exclusion between writers is the lease's job, not a pool's."""

WRITE_PRIORITY = 10
MAINTENANCE_PRIORITY = 1
EXECUTION_TIMEOUT = timedelta(hours=2)
RETRY_DELAY = timedelta(minutes=1)


def task_defaults(owner: str, execution_timeout: timedelta, priority: int) -> dict[str, Any]:
    """The arguments that every task of a DAG starts from.

    Weights are absolute: of two waiting tasks the more important goes first, and of two alike that of the earlier date.
    """
    return {
        "owner": owner,
        "pool": POOL,
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_policy": TypedRetryPolicy(),
        "execution_timeout": execution_timeout,
        "priority_weight": priority,
        "weight_rule": "absolute",
    }


def utc_intervals(cron: str) -> CronDataIntervalTimetable:
    """A timetable whose runs carry `[one tick, the next)` in UTC; `0 0 * * *` makes whole days."""
    return CronDataIntervalTimetable(cron, timezone="UTC")


def run_form() -> dict[str, Param]:
    """The fields of the form with which a domain's run is triggered by hand."""
    return {
        "day": Param(
            None,
            type=["null", "string"],
            format="date",
            title="Day",
            description_md="The UTC day to run for. A run by hand needs it; runs of the schedule and of a backfill "
            "carry their own date.",
        ),
        "reprocess": Param(
            False,
            type="boolean",
            title="Reprocess",
            description_md="Read the day's bronze rows again, even those that were consumed before: after a change "
            "of a spec, say.",
        ),
    }

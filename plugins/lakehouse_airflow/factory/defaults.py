"""What all DAGs of the factory share: the pool, priorities and fields of the form."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import CronDataIntervalTimetable, Param

from lakehouse_airflow.pool import POOL

WRITE_PRIORITY = 10
MAINTENANCE_PRIORITY = 1
EXECUTION_TIMEOUT = timedelta(hours=2)


def task_defaults(owner: str, execution_timeout: timedelta, priority: int) -> dict[str, Any]:
    """Return the default arguments of every task of a DAG; retries are the operators' own.

    Weights are absolute: the waiting task with the higher priority starts first, and of two equal ones that of the
    earlier date.
    """
    return {
        "owner": owner,
        "pool": POOL,
        "execution_timeout": execution_timeout,
        "priority_weight": priority,
        "weight_rule": "absolute",
    }


def utc_intervals(cron: str) -> CronDataIntervalTimetable:
    """Return a timetable whose runs carry `[one tick, the next)` in UTC; `0 0 * * *` makes whole days."""
    return CronDataIntervalTimetable(cron, timezone="UTC")


def run_form() -> dict[str, Param]:
    """Return the fields of the form for a manual run of a domain."""
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
            description_md="Read the day's bronze rows again, also those that were consumed before; for example "
            "after a change of a spec.",
        ),
    }

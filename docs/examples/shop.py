"""Builds the tables of the shop each time the partners are certified."""

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DeadlineAlert, DeadlineReference, SyncCallback

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory import build_domain_dag


def page_somebody(context: Any) -> None:
    """Stand for your notifier."""
    logging.getLogger(__name__).error("%s failed", context["task_instance"].task_id)


def tell_late(context: Any) -> None:
    """Stand for your notifier of a late run, which has no task."""
    run, due = context["dag_run"]["dag_run_id"], context["deadline"]["deadline_time"]
    logging.getLogger(__name__).error("%s was to end by %s", run, due)


late = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(hours=6), callback=SyncCallback(tell_late)
)

dag = build_domain_dag(
    "shop",
    schedule=table_asset("bronze.partners"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    owner="sales",
    max_active_runs=1,
    deadline=late,
    default_args={"pool": "spark", "retries": 6, "on_failure_callback": page_somebody},
)

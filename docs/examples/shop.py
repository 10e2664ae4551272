"""Builds the tables of the shop each time the partners are certified."""

import logging
from datetime import UTC, datetime
from typing import Any

from lakehouse_airflow.assets import table_asset
from lakehouse_airflow.factory import build_domain_dag


def page_somebody(context: Any) -> None:
    """Stand for your notifier."""
    logging.getLogger(__name__).error("%s failed", context["task_instance"].task_id)


dag = build_domain_dag(
    "shop",
    schedule=table_asset("bronze.partners"),
    start_date=datetime(2025, 1, 1, tzinfo=UTC),
    owner="sales",
    max_active_runs=1,
    default_args={"pool": "spark", "retries": 6, "on_failure_callback": page_somebody},
)

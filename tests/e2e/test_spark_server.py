"""The warm Spark server of a real Airflow dies, or is not used.

These tests come last: a server that has just started is slow for all that follows.
"""

from __future__ import annotations

import pytest

from demo.backfill import restart_backfill, watch
from embedded.airflow.api import AirflowApi
from embedded.spark.server import NAME as SPARK
from embedded.stack import Stack
from embedded.stack_processes import recorded
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, LoadDay

pytestmark = pytest.mark.slow


def test_a_day_goes_through_spark_submit_where_the_connection_says_so(
    api: AirflowApi, load_day: LoadDay, lakehouse: Settings
) -> None:
    master = {"connection_id": trials.SUBMIT_CONNECTION, "conn_type": "spark", "host": "local[2]"}
    api.ask("POST", "/api/v2/connections", json=master)

    run = load_day("submitted", FIRST, [("a", 1), ("b", 2)])

    assert run.state == "success"
    assert "spark-submit" in "\n".join(api.log(api.task(run, "bronze.submitted_readings")))
    assert trials.certified_rows(lakehouse, "bronze.submitted_readings") == [("a", 1), ("b", 2)]


def test_a_dead_server_is_started_again_and_a_backfill_of_two_days_at_once_ends_well(
    api: AirflowApi, stack: Stack, lakehouse: Settings
) -> None:
    trials.deliver(lakehouse.landing, "revived", FIRST, [("a", 1), ("b", 2)])
    trials.deliver(lakehouse.landing, "revived", SECOND, [("b", 3), ("c", 4)])
    server = recorded(stack.home, SPARK)
    server.kill()

    restart_backfill(api, "revived", FIRST, SECOND, at_once=2)
    days = list(watch(api, "revived", FIRST, SECOND, PATIENCE_S))[-1]

    assert [(day.day, day.run.state) for day in days] == [(FIRST, "success"), (SECOND, "success")]
    assert max(day.run.start_date for day in days) < min(day.run.end_date for day in days), "they ran at once"
    assert recorded(stack.home, SPARK) not in (None, server)
    assert trials.certified_rows(lakehouse, "silver.revived_readings") == [("a", 1), ("b", 3), ("c", 4)]

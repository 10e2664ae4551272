"""A topic in a real Airflow, read every few seconds: each message goes to bronze and silver once."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from embedded.airflow.api import AirflowApi, Run
from embedded.servers.kafka_broker import NAME, KafkaBroker
from embedded.stack_processes import stop
from millrace.control.log.delta_log import commits_after
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.waiting import wait_for
from tests.support.kafka_topic import KafkaTopic

pytestmark = pytest.mark.slow

BRONZE, SILVER = TABLES = ("bronze.fed_readings", "silver.fed_readings")
SENT = [("a", "b", "c"), ("d", "e")]
EVERY = sorted(sensor for sensors in SENT for sensor in sensors)


@pytest.fixture
def topic(broker: KafkaBroker) -> Iterator[KafkaTopic]:
    """The topic that the domain reads; its broker runs for this test alone."""
    broker.start(os.environ)
    try:
        topic = KafkaTopic(broker.address, trials.TOPIC)
        topic.create()
        yield topic
    finally:
        stop(broker.home, NAME, patience_s=15)


@pytest.fixture
def scheduled(api: AirflowApi, topic: KafkaTopic, lakehouse: Settings) -> list[Run]:
    """The runs of the schedule while messages came twice and then no more; oldest first."""
    try:
        for number, sensors in enumerate(SENT):
            topic.send(*({"sensor": sensor, "value": number} for sensor in sensors))
            api.set_paused("fed", False)
            wait_for(lambda last=sensors[-1]: last in sensors_in(lakehouse, SILVER), every_s=1)
        return wait_for(lambda: all_was_told(api), every_s=2)
    finally:
        api.set_paused("fed", True)
        for run in api.runs("fed", state=["queued", "running"]):
            api.end_run(run)


def all_was_told(api: AirflowApi) -> list[Run]:
    """The runs that have ended, once they say of every message that it was read, and one says that there was none."""
    runs = ended_runs(api)
    read = [messages_of(api, run) for run in runs]
    return runs if sum(read) == len(EVERY) and 0 in read else []


def ended_runs(api: AirflowApi) -> list[Run]:
    return [run for run in api.runs("fed", order_by="logical_date") if run.state == "success"]


def result_of(api: AirflowApi, run: Run, task_id: str) -> dict[str, Any]:
    """What a task gave on, as the UI shows it under XCom."""
    place = f"/api/v2/dags/{run.dag_id}/dagRuns/{run.dag_run_id}/taskInstances/{task_id}"
    return api.get(f"{place}/xcomEntries/return_value")["value"]


def messages_of(api: AirflowApi, run: Run) -> int:
    return result_of(api, run, BRONZE)["rows"].get("read", 0)


def sensors_in(lakehouse: Settings, table: str) -> list[str]:
    path = str(LakehousePaths(lakehouse.root).table(table))
    if not DeltaTable.is_deltatable(path):
        return []
    return sorted(DeltaTable(path).to_pyarrow_table(columns=["sensor"])["sensor"].to_pylist())


@pytest.mark.timeout(300)
def test_runs_of_a_short_schedule_take_each_message_once_and_without_one_start_no_driver(
    api: AirflowApi, scheduled: list[Run], lakehouse: Settings
) -> None:
    assert {run.run_type for run in scheduled} == {"scheduled"}
    assert [sensors_in(lakehouse, table) for table in TABLES] == [EVERY, EVERY]

    read = [messages_of(api, run) for run in scheduled]
    assert (read[0], sum(read)) == (len(SENT[0]), len(EVERY))
    commits = commits_after(LakehousePaths(lakehouse.root).table(BRONZE), -1)
    spans = [commit.metadata["sources"]["offsets"][trials.TOPIC]["0"] for commit in commits if commit.txns]
    assert [start for start, _ in spans] == [0, *(end for _, end in spans[:-1])], "each starts where the last one ended"
    assert spans[-1][1] == len(EVERY)

    quiet = scheduled[read.index(0)]
    assert f"{BRONZE}: {len(SENT[0])} new messages in 1 partition" in log_of(api, scheduled[0])
    assert "0 new messages in 0 partitions; no Spark is started" in log_of(api, quiet)
    assert [driver_log(lakehouse, run).exists() for run in (scheduled[0], quiet)] == [True, False]


def driver_log(lakehouse: Settings, run: Run) -> Path:
    """Where the driver of a run's bronze table writes, if there is one."""
    of_run = re.sub(r"[^\w.+=-]+", "_", run.dag_run_id)
    return lakehouse.root / "_millrace" / "driver_logs" / run.dag_id / of_run / BRONZE / "1.log"


def log_of(api: AirflowApi, run: Run) -> str:
    return "\n".join(api.log(api.task(run, BRONZE)))

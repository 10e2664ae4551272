"""One real stack for all end-to-end tests: its own home, its own lakehouse, the project's DAGs and a few trial ones."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from demo.source_system import lay_out
from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER, passwords
from embedded.clone import DEMO
from embedded.home import Home, free_port
from embedded.servers.kafka_broker import KafkaBroker
from embedded.stack import Stack
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, SECOND, LoadDay, StartDay
from tests.e2e.people import APPROVER
from tests.e2e.waiting import count_intents, drivers, ended, wait_for
from tests.support.airflow.trial_runs import trial_stack


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> KafkaBroker:
    """A Kafka broker, which does not run yet."""
    home = Home(tmp_path_factory.mktemp("kafka"))
    home.prepare()
    return KafkaBroker(home, Settings().jars / "kafka-broker", free_port(), free_port())


@pytest.fixture(scope="session")
def lakehouse(tmp_path_factory: pytest.TempPathFactory, broker: KafkaBroker) -> Settings:
    """An empty lakehouse with the specs and a day of landing files of the flights."""
    folder = tmp_path_factory.mktemp("lakehouse")
    kafka = {trials.CLUSTER: {"bootstrap.servers": broker.address}}
    settings = Settings(root=folder / "lakehouse", landing=folder / "landing", tables=folder / "tables", kafka=kafka)
    shutil.copytree(DEMO / "tables", settings.tables)
    lay_out(Path(settings.landing), FIRST, FIRST + timedelta(days=1))
    return settings


@pytest.fixture(scope="session")
def stack(lakehouse: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A running stack."""
    folder = tmp_path_factory.mktemp("airflow")
    with trial_stack(lakehouse, folder, without=["table_specs.py"], users=(USER, APPROVER)) as running:
        yield running


@pytest.fixture(scope="session")
def api(stack: Stack) -> Iterator[AirflowApi]:
    """A client of the stack's Airflow that has seen all DAGs."""
    with stack.api() as client:
        for dag_id in (
            "flights",
            "gate_override",
            "delete_approval",
            "table_rebuild",
            "table_repair",
            "table_vacuum",
            *trials.DOMAINS,
        ):
            client.wait_for_dag(dag_id)
        # As every DAG that a user writes it is paused at first, and its events start nothing.
        client.wait_for_dag(trials.PARTITIONED)
        client.set_paused(trials.PARTITIONED, paused=False)
        yield client


@pytest.fixture(scope="session")
def approver(stack: Stack) -> Iterator[AirflowApi]:
    """The same Airflow, as another person sees it."""
    with stack.api(APPROVER) as client:
        yield client


@pytest.fixture(scope="session")
def cookies(stack: Stack) -> dict[str, str]:
    """What a browser keeps of somebody who has logged in."""
    login = {"username": USER, "password": passwords(stack.home)[USER]}
    answer = httpx.post(f"{stack.address.url}/auth/token", json=login)
    return {"_token": answer.json()["access_token"]}


@pytest.fixture(scope="session")
def start_day(api: AirflowApi) -> StartDay:
    def start(dag_id: str, day: date) -> Run:
        api.set_paused(dag_id, False)
        return api.trigger(dag_id, {"day": str(day)})

    return start


@pytest.fixture(scope="session")
def load_day(api: AirflowApi, start_day: StartDay, lakehouse: Settings) -> LoadDay:
    def load(domain: str, day: date, readings: list[tuple[Any, ...]]) -> Run:
        trials.deliver(lakehouse.landing, domain, day, readings)
        return ended(api, start_day(domain, day))

    return load


@pytest.fixture(scope="session")
def killed_run(api: AirflowApi, stack: Stack, start_day: StartDay, lakehouse: Settings) -> Run:
    """The first day of the domain `judged` by hand; the task of its silver table dies half way, and is cleared."""
    trials.deliver(lakehouse.landing, "judged", FIRST, [("a", 1), ("b", 2)])
    run, table = start_day("judged", FIRST), "silver.judged_readings"
    driver = wait_for(lambda: drivers(stack.home, table))[0]
    wait_for(lambda: count_intents(lakehouse, table))
    driver.suspend()  # or it might end well before Airflow hears of it
    task = api.task(run, table)
    assert task.state == "running"
    api.mark_failed(task)
    wait_for(lambda: not drivers(stack.home, table), patience_s=30)
    assert ended(api, run).state == "failed"
    api.clear(run, table)
    return ended(api, run)


@pytest.fixture(scope="session")
def refused_run(killed_run: Run, load_day: LoadDay) -> Run:
    """The second day of the domain `judged`: a row in quarantine, and a silver version that its gate refused."""
    assert killed_run.state == "success"
    return load_day("judged", SECOND, [("c", 3), ("d", 4), ("e", 5), ("f", -6)])

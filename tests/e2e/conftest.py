"""One real stack for all end-to-end tests: its own home, its own lakehouse, the project's DAGs and a few trial ones."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from demo.backfill import DayOfBackfill, restart_backfill, watch
from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.api import AirflowApi, Run
from embedded.airflow.standalone import USER
from embedded.home import Home
from embedded.servers.kafka_broker import KafkaBroker, running_broker
from embedded.stack import Stack, remaining_processes
from include.settings import PROJECT, Settings
from tests.e2e import trials
from tests.e2e.days import FIRST, PATIENCE_S, SECOND, RunDay
from tests.e2e.killing import KilledAndCleared, kill_and_clear
from tests.e2e.people import APPROVER
from tests.e2e.rows import Rows, rows_of_domain
from tests.support.airflow.homes import new_homes


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real Kafka broker without topics."""
    with running_broker(tmp_path_factory.mktemp("kafka"), Settings().jars) as broker:
        yield broker


@pytest.fixture(scope="session")
def lakehouse(tmp_path_factory: pytest.TempPathFactory, broker: KafkaBroker) -> Settings:
    """An empty lakehouse with two days of landing files and the specs of the flights and of the trials."""
    folder = tmp_path_factory.mktemp("lakehouse")
    kafka = {trials.CLUSTER: {"bootstrap.servers": broker.address}}
    settings = Settings(root=folder / "lakehouse", landing=folder / "landing", tables=folder / "tables", kafka=kafka)
    shutil.copytree(PROJECT / "include" / "tables", settings.tables)
    trials.add_specs(settings.tables)
    lay_out(Path(settings.landing), FIRST, SECOND + timedelta(days=1))
    return settings


@pytest.fixture(scope="session")
def dags(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's DAG files and those of the trials."""
    folder = tmp_path_factory.mktemp("airflow") / "dags"
    shutil.copytree(PROJECT / "dags", folder)
    trials.add_dags(folder)
    return folder


@pytest.fixture(scope="session")
def new_home() -> Iterator[Callable[[], Home]]:
    with new_homes() as made:
        yield made


@pytest.fixture(scope="session")
def stack(new_home: Callable[[], Home], lakehouse: Settings, dags: Path) -> Iterator[Stack]:
    """A running stack. When all tests are over, no process of it may be left."""
    home = new_home()
    with Stack(home, lakehouse, Address.free(home, lakehouse), dags, users=(USER, APPROVER)) as running:
        yield running
    assert remaining_processes(home) == []


@pytest.fixture(scope="session")
def api(stack: Stack) -> Iterator[AirflowApi]:
    """A client of the stack's Airflow that has seen all DAGs."""
    with stack.api() as client:
        for dag_id in ("flights", "gate_override", "delete_approval", "table_rebuild", *trials.DOMAINS):
            client.wait_for_dag(dag_id)
        yield client


@pytest.fixture(scope="session")
def approver(stack: Stack) -> Iterator[AirflowApi]:
    """The same Airflow, as another person sees it."""
    with stack.api(APPROVER) as client:
        yield client


@pytest.fixture(scope="session")
def start_day(api: AirflowApi) -> RunDay:
    """Starts a run by hand for one day, as the form of the UI does."""

    def start(dag_id: str, day: date) -> Run:
        api.set_paused(dag_id, False)
        return api.trigger(dag_id, {"day": str(day)})

    return start


@pytest.fixture(scope="session")
def two_days(api: AirflowApi) -> list[DayOfBackfill]:
    """A backfill of the first two days, both at once, to its end."""
    restart_backfill(api, "flights", FIRST, SECOND, at_once=2)
    return list(watch(api, "flights", FIRST, SECOND, PATIENCE_S))[-1]


@pytest.fixture(scope="session")
def killed_run(api: AirflowApi, stack: Stack, start_day: RunDay, lakehouse: Settings) -> KilledAndCleared:
    """The first day of the domain `judged` by hand; the task of its silver table is killed half way, and cleared."""
    trials.deliver(lakehouse.landing, "judged", FIRST, [("a", 1), ("b", 2)])
    return kill_and_clear(api, stack, lakehouse, start_day("judged", FIRST), "silver.judged_readings")


@pytest.fixture(scope="session")
def good_rows(killed_run: KilledAndCleared, lakehouse: Settings) -> dict[str, Rows]:
    """The rows of the domain `judged` after that day; a test that loads a later day asks for them first."""
    assert killed_run.run.state == "success"
    return rows_of_domain("judged", lakehouse.tables, lakehouse.root)


@pytest.fixture(scope="session")
def refused_run(api: AirflowApi, good_rows: dict[str, Rows], start_day: RunDay, lakehouse: Settings) -> Run:
    """The second day of the domain `judged`: a row in quarantine, and a silver version that its gate refused."""
    assert good_rows["silver.judged_readings"].total() == 2
    trials.deliver(lakehouse.landing, "judged", SECOND, [("c", 3), ("d", 4), ("e", 5), ("f", -6)])
    return api.wait_for_run(start_day("judged", SECOND), PATIENCE_S)

"""What the tests of killed drivers share: a nursery of drivers, and two days of orders that nobody disturbed."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from include.settings import Settings
from include.spark_conf import launch_conf
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.killed_drivers.batches import CleanBatch, run_clean_batch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.lakehouse import Lakehouse, order

CLASSIC_MASTER = "local[2]"
BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")
RULE = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
TABLE_RULE = {"expect_column_values_to_be_unique": {"column": "day"}, "action": "fail"}
EVENTS = {
    (1, "a.json"): [order(1, 5, 8), order(2, 7, 8), "{broken", order(3, -1, 8)],
    (1, "b.json"): [order(4, 1, 8), "not json either"],
    (2, "a.json"): [
        order(1, 6, 9, of_day=2),
        order(2, None, 9, of_day=2, op="delete"),
        order(5, 3, 1, of_day=2),
        order(6, -4, 1, of_day=2),
        order(4, 1, 8),
        order(1, 2, 3),
    ],
}


@pytest.fixture(scope="session")
def drivers(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Runs job drivers and commands against the server."""
    log = tmp_path_factory.mktemp("drivers") / "driver.log"
    with Drivers({**clean_environment(), **server.client_env()}, log) as drivers:
        yield drivers


@pytest.fixture(scope="session")
def pair(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Drivers, Drivers]]:
    """Two that run drivers beside each other."""
    logs = tmp_path_factory.mktemp("pair")
    environment = {**clean_environment(), **server.client_env()}
    with Drivers(environment, logs / "one.log") as one, Drivers(environment, logs / "other.log") as other:
        yield one, other


@pytest.fixture(scope="session")
def classic_drivers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Runs job drivers each of which starts a Spark of its own, as under spark-submit, that ends with it."""
    conf = launch_conf(Settings().jars, CLASSIC_MASTER)
    words = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    submitted = shlex.join(["--master", CLASSIC_MASTER, "--driver-memory", "1g", *words, "pyspark-shell"])
    log = tmp_path_factory.mktemp("classic") / "driver.log"
    with Drivers({**clean_environment(), "PYSPARK_SUBMIT_ARGS": submitted}, log) as drivers:
        yield drivers


@pytest.fixture(params=["drivers", pytest.param("classic_drivers", marks=pytest.mark.faults)])
def any_drivers(request: pytest.FixtureRequest) -> Drivers:
    """Those on the server, and those with a Spark of their own."""
    found: Drivers = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def clean(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CleanBatch]:
    """Table -> a batch of two days of orders from landing files to gold.

    Bronze's is its first, into a lakehouse without any table; silver's and gold's is the second.
    """
    shop = Lakehouse(tmp_path_factory.mktemp("clean") / "shop")
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    shop.specs(
        bronze_document(columns=columns),
        silver_document(apply_as_deletes="op = 'delete'", expectations=[RULE]),
        gold_document(expectations=[TABLE_RULE]),
    )
    for (number, name), events in EVENTS.items():
        shop.deliver(number, name, events)
    first = run_clean_batch(drivers, shop, BRONZE, 1)
    for table, number in ((SILVER, 1), (GOLD, 1), (BRONZE, 2)):
        run_successfully(drivers, shop, table, number)
    return {BRONZE: first, **{table: run_clean_batch(drivers, shop, table, 2) for table in (SILVER, GOLD)}}

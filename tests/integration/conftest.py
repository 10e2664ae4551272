"""What the tests of the running parts share: a warm Spark server, and a lakehouse whose jobs work on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer
from tests.support.spark.shared_server import choose_server_address, shared_server

choose_server_address()

from tests.support.documents.specs import bronze_document, gold_document, silver_document  # noqa: E402
from tests.support.killed_drivers.drivers import Drivers  # noqa: E402
from tests.support.lakehouse import Lakehouse, copy_lakehouse  # noqa: E402
from tests.support.silver.refusing_gate import refusing_shop  # noqa: E402


@pytest.fixture(scope="session")
def server() -> SparkServer:
    """The server of all tests."""
    return shared_server()


@pytest.fixture(scope="session")
def drivers(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Runs job drivers and commands against the server."""
    log = tmp_path_factory.mktemp("drivers") / "driver.log"
    with Drivers({**clean_environment(), **server.client_env()}, log) as drivers:
        yield drivers


@pytest.fixture
def lakehouse(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """An empty lakehouse with one chain of tables: orders in bronze and silver, revenue by day in gold."""
    return with_one_chain(tmp_path)


@pytest.fixture(scope="module")
def shared(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """The same of a whole file of tests: to be filled once, and copied for each of them."""
    return with_one_chain(tmp_path_factory.mktemp("shared"))


@pytest.fixture
def shop(made: Lakehouse, tmp_path: Path) -> Lakehouse:
    """A copy for one test of the lakehouse that its file has made."""
    return copy_lakehouse(made, tmp_path / "shop")


def with_one_chain(folder: Path) -> Lakehouse:
    """A lakehouse of which the tables are stated, and nothing is there yet."""
    lakehouse = Lakehouse(folder)
    lakehouse.specs(bronze_document(), silver_document(), gold_document())
    return lakehouse


@pytest.fixture(scope="session")
def refusing(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Lakehouse:
    """A lakehouse whose silver gate is about to refuse the second day; to be copied."""
    return refusing_shop(Lakehouse(tmp_path_factory.mktemp("refusing")))

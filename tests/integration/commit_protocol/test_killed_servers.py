"""A Spark server that dies under its driver: the driver says so in time, and the next one ends the batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.running import running_server
from embedded.spark.server import NAME, SparkServer
from embedded.stack_processes import recorded
from millrace.control.ledger.states.failed_files import FailedFiles
from millrace.control.ledger.states.table_state import TableStates
from millrace.errors import ExitCode
from tests.support.documents.specs import bronze_document
from tests.support.killed_drivers.batches import CleanBatch, run_successfully
from tests.support.killed_drivers.drivers import Drivers
from tests.support.killed_drivers.outcome import states_of_files
from tests.support.killed_drivers.places import IN_THE_WRITE, KILLER, KILLER_LOADED
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.waiting import wait_for

pytestmark = pytest.mark.faults
BRONZE = "bronze.orders"
SERVER_GONE_S = 60
Clean = Callable[[str], CleanBatch]


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """A server of these tests alone, which each of them starts again."""
    with running_server(tmp_path_factory.mktemp("doomed") / "spark") as server:
        yield server


@pytest.fixture
def drivers_of_doomed(doomed: SparkServer, tmp_path: Path) -> Iterator[Drivers]:
    """Runs job drivers against it."""
    with Drivers({**clean_environment(), **doomed.client_env()}, tmp_path / "driver.log") as drivers:
        yield drivers


@pytest.mark.parametrize("when", ["after the driver", "while the driver still waits"])
def test_a_driver_whose_server_dies_says_so_in_time_and_the_next_one_ends_the_batch_at_a_server_started(
    drivers_of_doomed: Drivers, doomed: SparkServer, clean: Clean, tmp_path: Path, when: str
) -> None:
    batch, shop = clean("first file"), copy_lakehouse(clean("first file").before, tmp_path / "shop")
    with ThreadPoolExecutor(1) as pool:
        dead = pid_of(doomed)
        ending = pool.submit(drivers_of_doomed.run, shop, BRONZE, dies=IN_THE_WRITE, victim=dead)
        wait_for(lambda: not doomed.is_alive())
        if when == "after the driver":
            ending.result()
        doomed.start(clean_environment())
        ended = ending.result()
    assert pid_of(doomed) != dead
    assert ended.code == ExitCode.SPARK_UNAVAILABLE, ended.output
    assert ended.took_s < SERVER_GONE_S
    assert ended.report is not None
    assert f"sc://localhost:{doomed.port} died, or was restarted" in ended.report.message
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT], "the write was repeated at the other server"

    batch.assert_same(shop, batch.run(drivers_of_doomed, shop))


def test_a_file_that_kills_its_server_is_found_while_the_others_are_loaded(
    drivers_of_doomed: Drivers, doomed: SparkServer, tmp_path: Path
) -> None:
    shop = Lakehouse(tmp_path / "shop")
    shop.specs(bronze_document())
    for number, name in enumerate(("a.json", KILLER), start=1):
        shop.deliver(1, name, [order(number, number)])
    for _ in ("both files", "the killer alone"):
        ended = drivers_of_doomed.run(shop, BRONZE, dies=KILLER_LOADED, victim=pid_of(doomed))
        assert ended.code == ExitCode.SPARK_UNAVAILABLE, ended.output
        away = drivers_of_doomed.run(shop, BRONZE)
        assert away.code == ExitCode.SPARK_UNAVAILABLE, "no server answers, which is nobody's death"
        doomed.start(clean_environment())
    failed = TableStates(shop.paths).read(BRONZE, FailedFiles)
    assert failed
    assert [(Path(file.path).name, file.attempts) for file in failed.files] == [(KILLER, 1)]
    run_successfully(drivers_of_doomed, shop, BRONZE)
    tried = {Path(state.path).name: (state.tries, state.batch_seq) for state in states_of_files(shop.paths, BRONZE)}
    assert tried == {"a.json": (3, 1), KILLER: (4, 2)}, "each with one that found no server"


def pid_of(server: SparkServer) -> int:
    """The process of the server, which must live."""
    process = recorded(server.home, NAME)
    assert process is not None
    return process.pid

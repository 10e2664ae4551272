"""A landing file that kills each driver that loads it: it is found and given up, and all other files are loaded."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from millrace.cli.replay import record_replays, replays
from millrace.contracts.file_status import FileStatus
from millrace.control.leases.leases import Leases
from millrace.control.ledger.states.failed_files import FailedFiles
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.storage.objects_on_s3 import object_store
from millrace.errors import ExitCode, Outcome
from millrace.settings import Settings
from tests.support.documents.specs import bronze_document
from tests.support.killed_drivers.batches import assert_killed, run_successfully, succeeded
from tests.support.killed_drivers.drivers import OwnProcess
from tests.support.killed_drivers.outcome import states_of_files
from tests.support.killed_drivers.places import KILLER, KILLER_LOADED, KILLER_READ_AGAIN, RESCUED_READ
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import Lakehouse, order

BRONZE = "bronze.orders"
FOLDER = "orders/date=2013-01-01"


@pytest.fixture
def shop(server: SparkServer, tmp_path: Path) -> Lakehouse:
    shop = Lakehouse(tmp_path / "shop")
    shop.specs(bronze_document())
    for number, name in enumerate(("a.json", KILLER, "z.json"), start=1):
        shop.deliver(1, name, [order(number, number), "{broken"])
    return shop


def status_of(shop: Lakehouse) -> dict[str, tuple[FileStatus, int, int | None]]:
    """Return name -> status, tries and batch of each file."""
    return {
        Path(each.path).name: (each.status, each.tries, each.batch_seq) for each in states_of_files(shop.paths, BRONZE)
    }


def test_the_files_beside_one_that_kills_are_loaded_and_it_is_given_up_after_max_attempts(shop: Lakehouse) -> None:
    assert_killed(OwnProcess().run(shop, BRONZE, dies=KILLER_LOADED))
    assert {status for status, *_ in status_of(shop).values()} == {FileStatus.PLANNED}

    loaded, waiting = {"a.json": (FileStatus.LOADED, 2, 1)}, FileStatus.PLANNED
    for alone in (1, 2, 3):
        assert_killed(OwnProcess().run(shop, BRONZE, dies=KILLER_LOADED))
        status = status_of(shop)
        assert {**status, **loaded, KILLER: (waiting, 1 + alone, None)} == status
        loaded["z.json"], waiting = (FileStatus.LOADED, 2, 2), FileStatus.FAILED
    assert shop.rows(BRONZE, "order_id") == [("o1",), ("o3",)]
    assert len(shop.quarantine(BRONZE)) == 2

    report = succeeded(OwnProcess().run(shop, BRONZE, dies=KILLER_LOADED))
    assert report.outcome is Outcome.NO_OP
    assert (
        f"{FOLDER}/{KILLER} was given up after 3 attempts (the driver or its Spark died while it loaded this file "
        "alone, in the run test of day 1); `lakehouse replay` tries it again"
    ) in report.notes
    [failed] = TableStates(shop.paths).read(BRONZE, FailedFiles).files
    assert (failed.path, failed.attempts) == (f"{FOLDER}/{KILLER}", 3)

    settings = Settings(root=shop.folder / "lake", tables=shop.folder / "tables")
    record_replays(replays([f"{FOLDER}/{KILLER}"], settings), settings)
    assert run_successfully(OwnProcess(), shop, BRONZE).outcome is Outcome.COMMITTED
    assert shop.rows(BRONZE, "order_id") == [("o1",), ("o2",), ("o3",)]
    assert len(shop.quarantine(BRONZE)) == 3
    assert TableStates(shop.paths).read(BRONZE, FailedFiles).files == ()


def test_a_file_that_kills_whoever_closes_its_batch_is_left_out_of_that(shop: Lakehouse) -> None:
    shop.change_spec(BRONZE, lambda spec: {**spec, "source": {**spec["source"], "max_attempts_per_file": 1}})
    for _its_own_batch_then_all_files_then_each_alone in range(3):
        assert_killed(OwnProcess().run(shop, BRONZE, dies=KILLER_READ_AGAIN))
        assert not shop.quarantine(BRONZE)

    report = succeeded(OwnProcess().run(shop, BRONZE, dies=KILLER_READ_AGAIN))
    assert shop.rows(BRONZE, "order_id") == [("o1",), ("o2",), ("o3",)]
    assert {Path(row["source"]).name for row in shop.quarantine(BRONZE)} == {"a.json", "z.json"}
    [note] = (note for note in report.notes if "in no quarantine" in note)
    assert f"cannot be read again: {FOLDER}/{KILLER} (it killed 1 drivers); accepted rows are in the table" in note
    loaded = FileStatus.LOADED, 1, 1
    assert status_of(shop) == {"a.json": loaded, KILLER: loaded, "z.json": loaded}
    assert run_successfully(OwnProcess(), shop, BRONZE).outcome is Outcome.NO_OP


def test_files_that_can_be_read_alone_keep_their_refused_rows_however_often_the_closing_dies(shop: Lakehouse) -> None:
    shop.change_spec(BRONZE, lambda spec: {**spec, "source": {**spec["source"], "max_attempts_per_file": 1}})
    for _the_first_and_two_more in range(3):
        assert_killed(OwnProcess().run(shop, BRONZE, dies=RESCUED_READ))
    report = succeeded(OwnProcess().run(shop, BRONZE, dies=RESCUED_READ))
    assert len(shop.quarantine(BRONZE)) == 3
    assert not any("in no quarantine" in note for note in report.notes)
    assert any(note.startswith("batch 1 may have rescued values that nobody has counted") for note in report.notes)


def test_files_that_are_gone_or_changed_when_their_batch_is_closed_stop_no_other(shop: Lakehouse) -> None:
    shop.change_spec(BRONZE, lambda spec: {**spec, "source": {**spec["source"], "on_changed_file": "replace"}})
    assert_killed(OwnProcess().run(shop, BRONZE, dies=Step.COMMIT))
    (shop.folder / "landing" / FOLDER / KILLER).unlink()
    shop.deliver(1, "a.json", [order(7, 7), "{broken"])
    shop.deliver(1, "new.json", [order(4, 4)])
    report = run_successfully(OwnProcess(), shop, BRONZE)
    assert shop.rows(BRONZE, "order_id") == [("o2",), ("o3",), ("o4",), ("o7",)]
    [note] = (note for note in report.notes if "in no quarantine" in note)
    assert f"{FOLDER}/a.json (has other content now), {FOLDER}/{KILLER} (is gone)" in note
    assert {Path(row["source"]).name for row in shop.quarantine(BRONZE)} == {"a.json", "z.json"}


def test_of_the_files_that_may_have_killed_a_driver_one_is_loaded_at_a_time_in_the_whole_lakehouse(
    shop: Lakehouse,
) -> None:
    shop.change_spec(BRONZE, lambda spec: {**spec, "conflicts": {"wait_for_lease": "1 seconds"}})
    assert_killed(OwnProcess().run(shop, BRONZE, dies=KILLER_LOADED))
    shop.deliver(1, "new.json", [order(4, 4)])
    with Leases(object_store(shop.paths.leases), "a run of bronze.bills").suspects():
        waits = OwnProcess().run(shop, BRONZE)
    assert waits.code is ExitCode.CONFLICT
    assert "The lease suspects.table was not free within 1 s: held by a run of bronze.bills" in waits.output
    assert shop.rows(BRONZE, "order_id") == [("o4",)], "a file that killed nobody does not wait"
    assert status_of(shop)["a.json"] == (FileStatus.PLANNED, 1, None), "the wait is no attempt"
    assert run_successfully(OwnProcess(), shop, BRONZE).outcome is Outcome.COMMITTED

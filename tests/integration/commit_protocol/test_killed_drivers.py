"""Drivers of every kind of batch die at every place and run again: nothing is lost, nothing is doubled.

Most die by an exception, which costs less. Real ones that are killed work on a Spark Connect server, which outlives
them, or start a Spark of their own, which does not.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from millrace.contracts.file_status import FileStatus
from millrace.contracts.job.report import JobReport
from millrace.control.gates.gates import Gates
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import open_table
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import Document
from tests.support.given import given
from tests.support.killed_drivers.batches import CleanBatch, run_successfully, tries, wait_for_late_writes
from tests.support.killed_drivers.drivers import AnyDrivers, Drivers, OwnProcess
from tests.support.killed_drivers.outcome import lost_attempts, states_of_files
from tests.support.killed_drivers.places import FILES_LOADED, FILES_PLANNED, IN_THE_WRITE, RESULT_RECORDED, SLOW_WRITE_S
from tests.support.killed_drivers.scenarios import SCENARIOS
from tests.support.killed_drivers.steps import Step, steps_done
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order, tombstones_path
from tests.support.waiting import wait_for

Clean = Callable[[str], CleanBatch]
BRONZE, SILVER = "bronze.orders", "silver.orders"
A_JOB_OF_EACH_KIND = {
    "first file": (Step.INTENT, Step.COMMIT, FILES_LOADED),
    "merge": (Step.COMMIT, Step.RECORDED, Step.QUARANTINE, Step.TOMBSTONES, Step.CLOSED, Step.CERTIFICATE),
    "groups": (Step.COMMIT,),
}
"""A scenario for each layer -> the places at which the most is left to do."""

slow, faults = pytest.mark.slow, pytest.mark.faults


@pytest.mark.parametrize(("name", "places"), A_JOB_OF_EACH_KIND.items())
def test_drivers_one_of_which_is_killed_after_its_commit_leave_what_one_clean_driver_leaves(
    drivers: Drivers, clean: Clean, tmp_path: Path, name: str, places: Sequence[str]
) -> None:
    die_in_turn(clean(name), tmp_path, places, {Step.COMMIT: drivers}, OwnProcess())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", SCENARIOS)
def test_drivers_that_die_at_every_place_in_turn_leave_what_one_clean_driver_leaves(
    clean: Clean, tmp_path: Path, name: str
) -> None:
    die_in_turn(clean(name), tmp_path, SCENARIOS[name].places, {}, OwnProcess())


@pytest.mark.faults
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("kind", "name"),
    [*(("drivers", name) for name in (*A_JOB_OF_EACH_KIND, "replay of silver rows")), ("classic_drivers", "merge")],
)
def test_drivers_that_are_killed_at_every_place_in_turn_leave_what_one_clean_driver_leaves(
    request: pytest.FixtureRequest, clean: Clean, tmp_path: Path, kind: str, name: str
) -> None:
    die_in_turn(clean(name), tmp_path, SCENARIOS[name].places, {}, request.getfixturevalue(kind))


def die_in_turn(
    batch: CleanBatch, folder: Path, places: Sequence[str], of_place: dict[str, Drivers], others: AnyDrivers
) -> None:
    """Let a driver die at each place, and compare what the next one finds and leaves.

    After the commit the spec changes: it refuses no row, and takes none for a delete. The batch is closed as it was
    planned all the same.
    """
    shop, table = copy_lakehouse(batch.before, folder / "shop"), batch.table
    for place in places:
        batch.kill(of_place.get(place, others), shop, place)
        if place == Step.COMMIT:
            shop.change_spec(table, _loosened)
        if place in set(Step):
            assert steps_done(shop, table, batch.batch_seq)[-1] == place

    report = batch.run(others, shop)

    assert report.outcome == Outcome.NO_OP
    assert ("intent" in lost_attempts(shop.paths, table)) == (Step.INTENT in places)
    batch.assert_same(shop, report)
    if FILES_LOADED in places:
        assert batch.extra_tries(shop) == {sum(place in (FILES_PLANNED, Step.INTENT) for place in places)}


def _loosened(document: Document) -> Document:
    rules = [rule for rule in document.get("expectations", ()) if rule["action"] != "quarantine"]
    deletes = {"apply_as_deletes": "op = 'gone'"} if "apply_as_deletes" in document else {}
    return {**document, "expectations": rules, **deletes}


@pytest.mark.faults
@pytest.mark.parametrize("name", SCENARIOS)
def test_one_driver_finishes_all_that_a_killed_one_left_undone(
    drivers: AnyDrivers, clean: Clean, tmp_path: Path, name: str
) -> None:
    batch, shop = clean(name), copy_lakehouse(clean(name).before, tmp_path / "shop")
    batch.kill(drivers, shop, Step.COMMIT)

    report = batch.run(drivers, shop)

    assert report.outcome == Outcome.NO_OP
    # These have earlier tries without any death: one found new columns, two a file that the spec of then refused.
    tried_before = {"new columns": 1, "replayed file": 2}
    assert lost_attempts(shop.paths, batch.table) == ["intent", "failed"] * tried_before.get(name, 0)
    batch.assert_same(shop, report)


@pytest.mark.parametrize(
    ("name", "is_patient"),
    [
        pytest.param("merge", False, marks=slow),
        pytest.param("merge", True, marks=faults),
        pytest.param("replay of silver rows", True, marks=faults),
        *(pytest.param(name, False, marks=faults) for name in ("replaced file", "history", "query over silver tables")),
    ],
)
def test_a_write_that_goes_on_after_its_driver_has_died_is_one_batch_with_the_next_driver(
    drivers: AnyDrivers, clean: Clean, tmp_path: Path, name: str, is_patient: bool
) -> None:
    batch, shop = clean(name), copy_lakehouse(clean(name).before, tmp_path / "shop")
    table = shop.paths.table(batch.table)
    batch.kill(drivers, shop, IN_THE_WRITE)
    assert steps_done(shop, batch.table, batch.batch_seq) == [Step.INTENT], "the server was done before it died"
    if is_patient:
        wait_for(lambda: latest_version(table) == batch.report.version)

    report = batch.run(drivers, shop)

    wait_for_late_writes(shop, batch.table, report)
    assert report.outcome == Outcome.NO_OP or not is_patient
    batch.assert_same(shop, report)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=slow if name == "merge" else faults) for name in A_JOB_OF_EACH_KIND]
)
def test_a_write_whose_spark_ends_with_its_driver_is_one_batch_with_the_next_driver(
    classic_drivers: AnyDrivers, clean: Clean, tmp_path: Path, name: str
) -> None:
    batch, shop = clean(name), copy_lakehouse(clean(name).before, tmp_path / "shop")
    batch.kill(classic_drivers, shop, IN_THE_WRITE)
    assert steps_done(shop, batch.table, batch.batch_seq) == [Step.INTENT], "Spark was done before the driver died"

    batch.assert_same(shop, batch.run(classic_drivers, shop))


@pytest.mark.slow
def test_a_driver_told_to_end_interrupts_what_the_server_runs_for_it(
    drivers: AnyDrivers, clean: Clean, tmp_path: Path
) -> None:
    batch, shop = clean("first file"), copy_lakehouse(clean("first file").before, tmp_path / "shop")
    ended = drivers.run(shop, BRONZE, dies=IN_THE_WRITE, by=signal.SIGTERM)
    assert ended.code == 128 + signal.SIGTERM, ended.output
    time.sleep(SLOW_WRITE_S)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT], "the server went on and committed"

    batch.assert_same(shop, batch.run(OwnProcess(), shop))


@pytest.mark.slow
def test_a_run_that_dies_between_the_batch_of_a_replaced_file_and_that_of_a_new_one_loses_neither(
    clean: Clean, tmp_path: Path
) -> None:
    batch = clean("replaced file")
    shop = copy_lakehouse(batch.before, tmp_path / "shop")
    shop.deliver(1, "new.json", [order(8, 8)])
    batch.kill(OwnProcess(), shop, Step.COMMIT)
    assert "new.json" not in str(tries(shop, BRONZE))

    assert batch.run(OwnProcess(), shop).outcome == Outcome.COMMITTED

    batches = {state.path[-8:]: (state.status, state.batch_seq) for state in states_of_files(shop.paths, BRONZE)}
    loaded = FileStatus.LOADED
    assert batches == {"1/a.json": (loaded, 2), "1/b.json": (loaded, 1), "new.json": (loaded, 3)}
    assert shop.rows(BRONZE, "order_id") == [(f"o{number}",) for number in (1, 1, 2, 4, 5, 5, 6, 7, 8)]
    assert len(shop.quarantine(BRONZE)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("place", [RESULT_RECORDED, Step.CERTIFICATE])
def test_the_gates_after_a_death_find_by_the_changes_what_all_rows_say(
    clean: Clean, tmp_path: Path, place: str
) -> None:
    batch = clean("figures of a gate")
    shop, version = copy_lakehouse(batch.before, tmp_path / "shop"), batch.report.version
    assert version
    assert judged_since(batch.report) == {version - 1}
    batch.kill(OwnProcess(), shop, place)
    batch.assert_same(shop, batch.run(OwnProcess(), shop))
    assert_figures(shop, batch.report)

    given(shop, BRONZE, [order(5, 500, 10, seq=3), order(10, 3, 10)])
    refused = run_successfully(OwnProcess(), shop, SILVER)

    assert judged_since(refused) == {version - (place == RESULT_RECORDED)}
    assert refused.certified_version == version
    assert [check.passed for check in refused.checks] == [False, *[True] * 5]
    assert_figures(shop, refused)
    given(shop, BRONZE, [order(5, 5, 11, seq=4), order(11, 2, 11)])
    fixed = run_successfully(OwnProcess(), shop, SILVER)
    assert judged_since(fixed) == {refused.version}
    assert fixed.certified_version == fixed.version
    assert_figures(shop, fixed)


def judged_since(report: JobReport) -> set[int]:
    """Return the version whose figures each rule was judged with; an error if a rule was judged by all rows."""
    return {int(check.judged_by.removeprefix("the change since version ")) for check in report.checks}


def assert_figures(shop: Lakehouse, report: JobReport) -> None:
    """Check that the figures of the version's result are those of its rows."""
    assert report.version
    amounts = [amount for (amount,) in shop.rows(SILVER, "amount")]
    known = [amount for amount in amounts if amount is not None]
    result = Gates(shop.paths).results(SILVER)[-1].result
    assert result.version == report.version
    between, total, least, nulls, unique, rows = result.checks
    assert between.unexpected_rows == sum(amount > 100 for amount in known)
    assert (total.observed, least.observed, rows.observed) == (sum(known), min(known), len(amounts))
    assert (nulls.unexpected_rows, unique.unexpected_rows) == (len(amounts) - len(known), 0)


@pytest.mark.parametrize("name", ["first file", pytest.param("merge", marks=slow)])
def test_a_rebuild_and_its_undo_close_the_batch_of_a_dead_driver_first(clean: Clean, tmp_path: Path, name: str) -> None:
    batch, shop = clean(name), copy_lakehouse(clean(name).before, tmp_path / "shop")
    scenario = SCENARIOS[name]
    batch.kill(OwnProcess(), shop, Step.COMMIT)
    for request in ({}, {"undo": True}):
        ended = OwnProcess().rebuild(shop, batch.table, **request)
        assert ended.code == ExitCode.OK, ended.output
        assert shop.rows(batch.table, *scenario.columns) == scenario.content
        assert len(shop.waiting(batch.table)) == len(batch.end["quarantined"]) > 0
        if batch.table == SILVER:
            assert open_table(tombstones_path(shop, SILVER)).to_pyarrow_table()["order_id"].to_pylist() == ["o2"]

"""Drivers of two days merge two sources side by side, and are killed at any step: nothing is lost, nothing doubled."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from embedded.spark.server import SparkServer
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.delta_log import latest_version, remaining_commits
from millrace.control.log.stored_tables import open_table
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.complete_batches import unclosed_batches
from tests.support.given import given
from tests.support.killed_drivers.drivers import DriverEnd, Drivers
from tests.support.killed_drivers.places import BEFORE_REPORT, IN_THE_WRITE
from tests.support.killed_drivers.steps import Step
from tests.support.lakehouse import Lakehouse, tombstones_path
from tests.support.silver.source_reads import require_read_once
from tests.support.silver.two_shops import BRANCH, FEEDS, SILVER, WEB, ShopEvent, two_shops

pytestmark = pytest.mark.slow

PLACES = (
    *(Step.INTENT, IN_THE_WRITE, Step.COMMIT, Step.RECORDED, Step.QUARANTINE, Step.TOMBSTONES, Step.CLOSED),
    *(Step.CERTIFICATE, BEFORE_REPORT),
)
SOME = (Step.COMMIT, IN_THE_WRITE, Step.CLOSED)
OF_DAY = {1: BRANCH, 2: WEB}
"""Day -> the source at which its runs begin."""


@pytest.fixture
def shop(tmp_path: Path, server: SparkServer) -> Lakehouse:
    shop = Lakehouse(tmp_path / "shop")
    shop.specs(*two_shops(concurrent=True))
    return shop


def bring(shop: Lakehouse, number: int, file: int) -> None:
    """Bring a file to bronze that updates an order, ends one, begins one, and has one that is refused."""
    source, at = OF_DAY[number], (file, 10 * file)
    events = [ShopEvent(source, 1, file, *at), ShopEvent(source, 100 + file, file, *at)]
    events += [ShopEvent(source, 99 + file, None, *at), ShopEvent(source, 200 + file, -1, *at)]
    given(shop, source, [event.row for event in events], number, f"{file:02d}.json")


def begin(shop: Lakehouse) -> None:
    """Merge the first file of both sources."""
    for number in OF_DAY:
        bring(shop, number, 0)
    shop.run(SILVER)


def beside(shop: Lakehouse) -> Lakehouse:
    """Return the same lakehouse for a thread of its own, with other names for the reports of drivers."""
    return Lakehouse(shop.folder, reports=[None])  # type: ignore[list-item]


def require_right_rows(shop: Lakehouse, files: int) -> None:
    """Require the rows of so many files of each source, in the table, its quarantine and its tombstones, once each."""
    last = files - 1
    rows = [row for shop in FEEDS for row in (("o1", last, shop), (f"o{100 + last}", last, shop))]
    assert shop.rows(SILVER, "order_id", "amount", "shop") == sorted(rows, key=repr)
    refused = Counter((row["source"].partition(":")[0], row["row_id"]) for row in shop.quarantine(SILVER))
    assert set(refused.values()) == {1}
    assert Counter(source for source, _ in refused) == dict.fromkeys(FEEDS, files)
    deleted = open_table(tombstones_path(shop, SILVER)).to_pyarrow_table(columns=["shop", "order_id"]).to_pylist()
    assert Counter((row["shop"], row["order_id"]) for row in deleted) == Counter(
        (source, f"o{99 + file}") for source in FEEDS for file in range(files)
    )


def require_sound_batches(shop: Lakehouse) -> None:
    """Require that all batches are closed and certified, have a number each, and met no batch of another stream."""
    table, gates = shop.paths.table(SILVER), Gates(shop.paths)
    newest = latest_version(table)
    assert unclosed_batches(SILVER, newest, shop.paths, Ledger(shop.paths), gates) == []
    assert gates.certified(SILVER) == newest
    commits = list(remaining_commits(table, None))
    assert set(Counter(txn for commit in commits for txn in commit.txns.items()).values()) == {1}
    operations = [commit.operation for commit in commits if commit.changes_data]
    assert operations[2:] == ["MERGE"] * len(operations[2:]), "after the first file of each source, rows are updated"
    stream_of = {commit.version: commit.metadata.get("stream") for commit in commits}
    for write in OpsTables(shop.paths).commits.of(SILVER):
        assert all(race.version is None or stream_of[race.version] == write.stream for race in write.lost), write
    require_read_once(shop, SILVER, FEEDS)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("places", [SOME, pytest.param(PLACES, marks=pytest.mark.faults)])
def test_drivers_of_two_sources_that_are_killed_side_by_side_lose_and_double_nothing(
    pair: tuple[Drivers, Drivers], shop: Lakehouse, places: Sequence[str]
) -> None:
    other = beside(shop)
    begin(shop)

    def merge_and_die(drivers: Drivers, shop: Lakehouse, number: int, places: Sequence[str]) -> list[DriverEnd]:
        ends = []
        for file, place in enumerate(places, start=1):
            bring(shop, number, file)
            ends.append(drivers.run(shop, SILVER, number, dies=place))
        return ends

    with ThreadPoolExecutor(2) as threads:
        one = threads.submit(merge_and_die, pair[0], shop, 1, places)
        ends = [*merge_and_die(pair[1], other, 2, places[::-1]), *one.result()]

    assert all(end.code <= 0 for end in ends), [end.output for end in ends if end.code > 0]
    # A driver has nothing to do, and does not die, if the other one has just merged both sources.
    assert sum(end.code == -signal.SIGKILL for end in ends) > len(places)
    shop.run(SILVER)
    require_right_rows(shop, 1 + len(places))
    require_sound_batches(shop)


@pytest.mark.timeout(1800)
def test_merges_of_two_sources_at_once_do_not_conflict(pair: tuple[Drivers, Drivers], shop: Lakehouse) -> None:
    other = beside(shop)
    begin(shop)
    for file in range(1, 9):
        for number in OF_DAY:
            bring(shop, number, file)
        with ThreadPoolExecutor(2) as threads:
            # Each merge takes some seconds; a signal that does nothing is no kill.
            runs = [
                threads.submit(drivers.run, lakehouse, SILVER, number, IN_THE_WRITE, by=signal.SIGCONT)
                for drivers, lakehouse, number in zip(pair, (shop, other), OF_DAY, strict=True)
            ]
        ends = [run.result() for run in runs]
        assert [end.code for end in ends] == [0, 0], [end.output for end in ends]
        assert all(end.report and not end.report.lost_races for end in ends)
        if has_overlap(shop):
            break
    else:
        pytest.fail("no two merges were at work at the same time")
    require_right_rows(shop, 1 + file)
    require_sound_batches(shop)


def has_overlap(shop: Lakehouse) -> bool:
    """Whether a MERGE of a source that updates rows began before another one was committed that does so, too."""
    table = shop.paths.table(SILVER)
    commits = [commit for commit in remaining_commits(table, None) if commit.operation == "MERGE"]
    updating = {commit.version: commit.metadata["stream"] for commit in commits if commit.changes_data}
    for version, stream in updating.items():
        lines = Path(f"{table}/_delta_log/{version:020d}.json").read_text().splitlines()
        info = next(action["commitInfo"] for action in map(json.loads, lines) if "commitInfo" in action)
        between = range(info["readVersion"] + 1, version)
        if any(updating.get(other, stream) != stream for other in between):
            return True
    return False

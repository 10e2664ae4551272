"""Real Spark drivers die at every step of the commit protocol and run again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from embedded.airflow import clean_environment
from embedded.processes import recorded
from embedded.spark_server import NAME, SparkServer
from include.contracts.job_report import JobReport
from include.control.delta_log import commits_after, latest_version
from include.errors import ExitCode, Outcome
from tests.support.killed_drivers.drivers import Drivers, Ended
from tests.support.killed_drivers.outcome import losers, outcome
from tests.support.killed_drivers.places import BEFORE_INTENT, IN_THE_WRITE, SLOW_WRITE_S
from tests.support.killed_drivers.steps import Step, steps_done, steps_of
from tests.support.lakehouse import Lakehouse, order
from tests.support.specs import bronze_document, gold_document, silver_document
from tests.support.warm_server import warm_server

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")
BATCH = {BRONZE: 1, SILVER: 2, GOLD: 2}
"""The batch whose driver dies: bronze's first, into a lakehouse without any table; silver's and gold's second."""
SERVER_GONE_S = 60
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


@dataclass(frozen=True)
class Clean:
    """What happens when nobody dies.

    Attributes:
        before: table -> the lakehouse as the driver that is to die finds it.
        reports: table -> the report of its driver.
        ends: table -> all that the lakehouse holds afterwards.
    """

    before: dict[str, Lakehouse]
    reports: dict[str, JobReport]
    ends: dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def drivers(server: SparkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Runs job drivers against the server."""
    log = tmp_path_factory.mktemp("drivers") / "driver.log"
    with Drivers({**clean_environment(), **server.client_env()}, log) as drivers:
        yield drivers


@pytest.fixture
def doomed(tmp_path: Path) -> Iterator[SparkServer]:
    """A server of one test alone."""
    with warm_server(tmp_path / "spark") as server:
        yield server


@pytest.fixture
def drivers_of_doomed(doomed: SparkServer, tmp_path: Path) -> Iterator[Drivers]:
    """Runs job drivers against it."""
    with Drivers({**clean_environment(), **doomed.client_env()}, tmp_path / "driver.log") as drivers:
        yield drivers


@pytest.fixture(scope="module")
def clean(drivers: Drivers, tmp_path_factory: pytest.TempPathFactory) -> Clean:
    """Two days of orders from landing files to gold, without a death."""
    shop = Lakehouse(tmp_path_factory.mktemp("clean") / "shop")
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    shop.specs(
        bronze_document(columns=columns),
        silver_document(apply_as_deletes="op = 'delete'", expectations=[RULE]),
        gold_document(expectations=[TABLE_RULE]),
    )
    for (number, name), lines in EVENTS.items():
        shop.deliver(
            number, name, "".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines)
        )
    before, reports, ends = {}, {}, {}
    for table, number in ((table, number) for number in (1, 2) for table in TABLES):
        if BATCH[table] == number:
            before[table] = copy(shop, f"before_{table}")
        ended = drivers.run(shop, table, number)
        assert ended.code == ExitCode.OK, ended.said
        if BATCH[table] == number:
            assert ended.report is not None
            reports[table], ends[table] = ended.report, outcome(shop.paths, table)
    return Clean(before, reports, ends)


def copied(lakehouse: Lakehouse, folder: Path) -> Lakehouse:
    """A copy of a lakehouse, its specs and its landing files."""
    shutil.copytree(lakehouse.folder, folder)
    return Lakehouse(folder)


def copy(lakehouse: Lakehouse, name: str) -> Lakehouse:
    """The lakehouse as it is now, kept beside it."""
    return copied(lakehouse, lakehouse.folder.parent / name)


def rerun(drivers: Drivers, shop: Lakehouse, table: str) -> JobReport:
    """Run the driver again; it must end well."""
    again = drivers.run(shop, table, BATCH[table])
    assert again.code == ExitCode.OK, again.said
    assert again.report is not None
    return again.report


def assert_as_clean(shop: Lakehouse, table: str, report: JobReport, clean: Clean) -> None:
    """Tables, ledger, certificates and report are those of a run that nobody killed."""
    end = outcome(shop.paths, table)
    assert {part: end[part] for part in end} == clean.ends[table]
    assert set(losers(shop.paths, table)) <= {"intent"}
    said = {name: getattr(report, name) for name in ("batch_seq", "version", "certified_version", "table_rows")}
    assert said == {name: getattr(clean.reports[table], name) for name in said}
    assert report.rows.are_conserved
    if report.outcome == Outcome.COMMITTED:
        assert report.rows == clean.reports[table].rows


def test_the_clean_run_has_every_kind_of_row_that_can_be_lost(clean: Clean) -> None:
    assert clean.reports[BRONZE].rows.model_dump(exclude_defaults=True) == {
        "read": 6, "applied": 4, "quarantined": 2, "inserted": 4
    }  # fmt: skip
    assert clean.reports[SILVER].rows.model_dump(exclude_defaults=True) == {
        "read": 6, "applied": 3, "unchanged": 1, "superseded": 1, "quarantined": 1,
        "inserted": 1, "updated": 1, "deleted": 1,
    }  # fmt: skip
    assert clean.reports[GOLD].rows.model_dump(exclude_defaults=True) == {
        "read": 2, "applied": 2, "inserted": 2, "deleted": 1
    }  # fmt: skip
    assert [check.rule for check in clean.reports[GOLD].checks]
    assert [len(rows) for rows in clean.ends[BRONZE]["rows"].values()] == [4, 2]
    assert [len(rows) for rows in clean.ends[SILVER]["rows"].values()] == [3, 2, 1]
    assert [len(rows) for rows in clean.ends[GOLD]["rows"].values()] == [2]
    assert "False" not in json.dumps([end["rows"] for end in clean.ends.values()])
    assert [end["files"] for end in clean.ends.values()] == [
        [("orders/date=2013-01-01/a.json", 1, 4, 3), ("orders/date=2013-01-01/b.json", 1, 2, 1)],
        [],
        [],
    ]


@pytest.mark.parametrize("table", TABLES)
def test_drivers_that_are_killed_after_every_step_in_turn_leave_what_one_clean_driver_leaves(
    drivers: Drivers, clean: Clean, tmp_path: Path, table: str
) -> None:
    shop, done = copied(clean.before[table], tmp_path / "shop"), list[Step]()
    for place in (BEFORE_INTENT, *steps_of(table)):
        done = steps_of(table)[: len(done) + (place != BEFORE_INTENT)]
        assert_killed(drivers.run(shop, table, BATCH[table], dies=place))
        assert steps_done(shop, table, BATCH[table]) == done

    report = rerun(drivers, shop, table)

    assert report.outcome == Outcome.NO_OP
    assert losers(shop.paths, table) == ["intent"]
    assert_as_clean(shop, table, report, clean)


@pytest.mark.parametrize(
    ("table", "place"),
    [
        (SILVER, Step.COMMIT),
        pytest.param(SILVER, Step.QUARANTINE, marks=pytest.mark.faults),
        pytest.param(BRONZE, Step.COMMIT, marks=pytest.mark.faults),
        pytest.param(GOLD, Step.COMMIT, marks=pytest.mark.faults),
    ],
)
def test_one_driver_finishes_all_that_a_killed_one_left_undone(
    drivers: Drivers, clean: Clean, tmp_path: Path, table: str, place: Step
) -> None:
    shop = copied(clean.before[table], tmp_path / "shop")
    assert_killed(drivers.run(shop, table, BATCH[table], dies=place))
    assert steps_done(shop, table, BATCH[table])[-1] == place

    report = rerun(drivers, shop, table)

    assert report.outcome == Outcome.NO_OP
    assert losers(shop.paths, table) == []
    assert_as_clean(shop, table, report, clean)


@pytest.mark.parametrize(
    "patient",
    [
        pytest.param(False, id="at once"),
        pytest.param(True, id="once the server has committed", marks=pytest.mark.faults),
    ],
)
def test_a_merge_that_goes_on_after_its_driver_has_died_is_one_batch_with_the_next_driver(
    drivers: Drivers, clean: Clean, tmp_path: Path, patient: bool
) -> None:
    shop = copied(clean.before[SILVER], tmp_path / "shop")
    silver = shop.paths.table(SILVER)
    assert_killed(drivers.run(shop, SILVER, 2, dies=IN_THE_WRITE))
    assert steps_done(shop, SILVER, 2) == [Step.INTENT], "the server was done before the driver died"
    if patient:
        wait_for(lambda: latest_version(silver) == clean.reports[SILVER].version)

    report = rerun(drivers, shop, SILVER)

    wait_for(lambda: report.outcome == Outcome.NO_OP or not_in_the_log(silver))
    time.sleep(1 if report.outcome == Outcome.COMMITTED else 0)  # the dead driver's commit would come right after
    assert report.outcome == Outcome.NO_OP or not patient
    assert_as_clean(shop, SILVER, report, clean)


def test_a_driver_told_to_end_interrupts_what_the_server_runs_for_it(
    drivers: Drivers, clean: Clean, tmp_path: Path
) -> None:
    shop = copied(clean.before[BRONZE], tmp_path / "shop")
    ended = drivers.run(shop, BRONZE, 1, dies=IN_THE_WRITE, by=signal.SIGTERM)
    assert ended.code == 128 + signal.SIGTERM, ended.said
    time.sleep(SLOW_WRITE_S)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT], "the server went on and committed"

    assert_as_clean(shop, BRONZE, rerun(drivers, shop, BRONZE), clean)


@pytest.mark.faults
def test_a_driver_whose_server_dies_says_so_in_time_and_runs_well_on_the_next_one(
    drivers_of_doomed: Drivers, doomed: SparkServer, clean: Clean, tmp_path: Path
) -> None:
    shop = copied(clean.before[BRONZE], tmp_path / "shop")
    ended = drivers_of_doomed.run(shop, BRONZE, 1, dies=IN_THE_WRITE, victim=pid_of(doomed))
    assert not doomed.is_alive(), "the server still lives"
    assert_server_missed(ended, doomed)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT]

    doomed.start(clean_environment())
    doomed.wait()
    assert_as_clean(shop, BRONZE, rerun(drivers_of_doomed, shop, BRONZE), clean)


@pytest.mark.faults
def test_a_write_is_not_repeated_at_a_server_that_took_the_place_of_a_dead_one(
    drivers_of_doomed: Drivers, doomed: SparkServer, clean: Clean, tmp_path: Path
) -> None:
    shop = copied(clean.before[BRONZE], tmp_path / "shop")
    dead = pid_of(doomed)
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(drivers_of_doomed.run, shop, BRONZE, 1, IN_THE_WRITE, signal.SIGKILL, dead)
        wait_for(lambda: not doomed.is_alive())
        doomed.start(clean_environment())
        doomed.wait()
        ended = ending.result()
    assert pid_of(doomed) != dead
    assert_server_missed(ended, doomed)
    assert steps_done(shop, BRONZE, 1) == [Step.INTENT]

    assert_as_clean(shop, BRONZE, rerun(drivers_of_doomed, shop, BRONZE), clean)


def pid_of(server: SparkServer) -> int:
    """The process of the server, which must live."""
    process = recorded(server.home, NAME)
    assert process is not None
    return process.pid


def assert_server_missed(ended: Ended, server: SparkServer) -> None:
    """The driver ended in time, and says which server it misses."""
    assert ended.code == ExitCode.SPARK_UNAVAILABLE, ended.said
    assert ended.took_s < SERVER_GONE_S
    assert ended.report is not None
    assert f"sc://localhost:{server.port} died, or was started anew" in ended.report.message


def assert_killed(ended: Ended) -> None:
    """The driver came to its place, died there, and left no report."""
    assert ended.code == -signal.SIGKILL, ended.said
    assert ended.report is None


def wait_for(happens: Callable[[], object], patience_s: float = 60) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + patience_s
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def not_in_the_log(table: Path) -> set[str]:
    """Data files in the folder of a table that no version of it names."""
    named = {name for commit in commits_after(table, -1) for name in commit.added}
    return {file.name for file in table.glob("*.parquet")} - named

"""Two runs of one silver table at the same moment: each ends well, and every row is merged once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from include.control.log.delta_log import remaining_commits
from tests.support.killed_drivers.drivers import DriverEnd, Drivers
from tests.support.lakehouse import Lakehouse, order

pytestmark = pytest.mark.slow

BRONZE, SILVER = "bronze.orders", "silver.orders"
ROUNDS = 3


def run_at_once(
    pair: tuple[Drivers, Drivers], shops: tuple[Lakehouse, Lakehouse], days: tuple[int, int]
) -> list[DriverEnd]:
    with ThreadPoolExecutor(2) as threads:
        started = [
            threads.submit(drivers.run, shop, SILVER, number)
            for drivers, shop, number in zip(pair, shops, days, strict=True)
        ]
        return [one.result() for one in started]


def test_each_row_is_merged_once_and_each_run_says_how_it_ended(
    lakehouse: Lakehouse, pair: tuple[Drivers, Drivers]
) -> None:
    other = Lakehouse(lakehouse.folder)
    other.reports.extend(lakehouse.reports)
    applied = read = 0
    for number in range(1, ROUNDS + 1):
        later = number + ROUNDS
        for day in (number, later):
            lakehouse.deliver(day, "a.json", [order(f"{day}.{key}", key, of_day=day) for key in range(20)])
            lakehouse.run(BRONZE, day)
        other.reports[:] = [*lakehouse.reports, *lakehouse.reports]  # so that their reports are files of their own
        ended = run_at_once(pair, (lakehouse, other), (number, later))
        reports = [end.report for end in ended if end.report]
        assert [end.code for end in ended] == [0, 0], [end.output for end in ended]
        assert sorted(report.outcome.value for report in reports) == ["committed", "no_op"]
        applied += sum(report.rows.applied for report in reports if report.outcome.value == "committed")
        read += sum(report.rows.read for report in reports if report.outcome.value == "committed")
    assert (read, applied) == (40 * ROUNDS, 40 * ROUNDS)
    assert len(lakehouse.rows(SILVER, "order_id")) == 40 * ROUNDS
    require_each_token_once(lakehouse.paths.table(SILVER))


def require_each_token_once(table: Path) -> None:
    commits = [commit.metadata for commit in remaining_commits(table, None) if commit.txns]
    assert [commit["batch_seq"] for commit in commits] == list(range(1, ROUNDS + 1))
    assert len({commit["token"] for commit in commits}) == ROUNDS

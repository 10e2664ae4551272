"""Days of a trial domain: deliver them one by one, and check the tables after Airflow has run them."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import psutil

from embedded.stack import Stack
from include.catalog import load_catalog
from include.control.log.delta_log import commits_after
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths
from include.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST
from tests.e2e.killing import count_intents
from tests.e2e.waiting import drivers, wait_for


def deliver_next_day(settings: Settings, domain: str) -> date:
    """Deliver the domain's next day, with values that no other day has."""
    day = FIRST + timedelta(days=(number := _days(settings, domain)))
    trials.deliver(settings.landing, domain, day, _values(number))
    return day


def driver_in_mid_write(stack: Stack, settings: Settings, table: str, intents: int) -> psutil.Process:
    """Wait for more than `intents` intents of `table` in the ledger; return the Python process of its newest driver."""
    wait_for(lambda: count_intents(settings, table) > intents)
    return min(wait_for(lambda: drivers(stack.home, table)), key=lambda process: -process.create_time())


def assert_batches_once(settings: Settings, domain: str) -> None:
    """Check that bronze has all delivered days, silver and gold the last day, and that each batch is committed once."""
    days, paths = _days(settings, domain), LakehousePaths(settings.root)
    delivered = [value for number in range(days) for value in _values(number)]
    expected = {"bronze": sorted(delivered), "silver": _values(days - 1), "gold": _values(days - 1)}
    for spec in load_catalog(settings.tables).of_domain(domain):
        value = "total" if spec.layer == "gold" else "value"
        rows = open_table(paths.table(spec.table)).to_pyarrow_table(columns=["sensor", value]).to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == expected[spec.layer], spec.table
        commits = commits_after(paths.table(spec.table), -1)
        committed = [commit.metadata["batch_seq"] for commit in commits if commit.txns]
        assert committed == list(range(1, days + 1)), spec.table


def _days(settings: Settings, domain: str) -> int:
    return len(list(Path(settings.landing).glob(f"{domain}/*")))


def _values(number: int) -> list[tuple[str, int]]:
    return [("a", 10 * number + 1), ("b", 10 * number + 2)]

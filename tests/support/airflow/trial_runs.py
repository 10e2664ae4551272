"""Days of a trial domain that are delivered one by one, run through Airflow, and looked for in the tables."""

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


def deliver_one_more(settings: Settings, domain: str) -> date:
    """Deliver the domain's next day, with values that no other day has."""
    day = FIRST + timedelta(days=(number := _days(settings, domain)))
    trials.deliver(settings.landing, domain, day, _values(number))
    return day


def half_way(stack: Stack, settings: Settings, table: str, intents: int) -> psutil.Process:
    """The Python of the driver that writes `table`, once the ledger has more than so many intents of it."""
    wait_for(lambda: count_intents(settings, table) > intents)
    return min(wait_for(lambda: drivers(stack.home, table)), key=lambda one: -one.create_time())


def assert_batches_once(settings: Settings, domain: str) -> None:
    """Every delivered day is in bronze, the last one in what is above, and every batch was committed once."""
    days, paths = _days(settings, domain), LakehousePaths(settings.root)
    delivered = [value for number in range(days) for value in _values(number)]
    wanted = {"bronze": sorted(delivered), "silver": _values(days - 1), "gold": _values(days - 1)}
    for spec in load_catalog(settings.tables).of_domain(domain):
        value = "total" if spec.layer == "gold" else "value"
        rows = open_table(paths.table(spec.table)).to_pyarrow_table(columns=["sensor", value]).to_pylist()
        assert sorted(tuple(row.values()) for row in rows) == wanted[spec.layer], spec.table
        committed = [one.metadata["batch_seq"] for one in commits_after(paths.table(spec.table), -1) if one.txns]
        assert committed == list(range(1, days + 1)), spec.table


def _days(settings: Settings, domain: str) -> int:
    return len(list(Path(settings.landing).glob(f"{domain}/*")))


def _values(number: int) -> list[tuple[str, int]]:
    return [("a", 10 * number + 1), ("b", 10 * number + 2)]

"""Days of a trial domain: deliver them one by one to an Airflow, and check the tables after it has run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psutil

from embedded.address import Address
from embedded.airflow.api import AirflowApi, Run
from embedded.stack import Stack, remaining_processes
from millrace.catalog import load_catalog
from millrace.control.log.delta_log import commits_after
from millrace.control.log.stored_tables import open_table
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.e2e import trials
from tests.e2e.days import FIRST
from tests.e2e.waiting import count_intents, drivers, wait_for
from tests.support.airflow.airflow_home import copy_dags
from tests.support.airflow.homes import new_home

PATIENCE_S = 900

NEEDLESS = ("flights.py", "table_maintenance.py", "table_specs.py")
"""DAG files that few tests of a stack need; Airflow would parse them every half a minute."""


@contextmanager
def trial_stack(
    lakehouse: Settings, folder: Path, without: Sequence[str] = NEEDLESS, **options: Any
) -> Iterator[Stack]:
    """Run a stack with the DAGs of the project and of the trial domains; no process of it is left at the end."""
    dags = copy_dags(folder / "dags", *without)
    trials.add_specs(lakehouse.tables)
    trials.add_dags(dags)
    with new_home() as home:
        with Stack(home, lakehouse, Address.free(home, lakehouse), dags, **options) as running:
            yield running
        assert remaining_processes(home) == []


def begin_next_day(api: AirflowApi, stack: Stack, lakehouse: Settings, table: str) -> tuple[Run, psutil.Process]:
    """Run the next day of the table's domain until it writes the table; return the run, and its driver's Python."""
    domain = load_catalog(lakehouse.tables).spec(table).domain
    day, intents = deliver_next_day(lakehouse, domain), count_intents(lakehouse, table)
    run = api.trigger(domain, {"day": str(day)})
    wait_for(lambda: count_intents(lakehouse, table) > intents)
    return run, min(wait_for(lambda: drivers(stack.home, table)), key=lambda process: -process.create_time())


def require_next_try(api: AirflowApi, lakehouse: Settings, run: Run, table: str) -> None:
    """Check that the run ends well by the second try of the task that writes the table."""
    assert api.wait_for_run(run, PATIENCE_S).state == "success"
    assert api.task(run, table).try_number == 2
    assert_batches_once(lakehouse, load_catalog(lakehouse.tables).spec(table).domain)


def deliver_next_day(settings: Settings, domain: str) -> date:
    """Deliver the domain's next day, with values that no other day has."""
    day = FIRST + timedelta(days=(number := _days(settings, domain)))
    trials.deliver(settings.landing, domain, day, _values(number))
    return day


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

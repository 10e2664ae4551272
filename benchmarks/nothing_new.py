"""What a worker of Airflow does for tables with nothing new: ask the planner, start nothing.

    python -m benchmarks.nothing_new DAY TABLE...     where things lie is said by LAKEHOUSE_ROOT and LAKEHOUSE_LANDING

The same two calls as in `lakehouse_airflow.operators.table_write`, without Airflow's own cost, which every task has
whatever it runs.
"""

from __future__ import annotations

import sys

from include.catalog import load_catalog
from include.cli.selection import parse_intervals
from include.control.planning.planner import Planner
from include.settings import Settings


def decide(day: str, tables: list[str]) -> None:
    """Ask about each table in turn.

    Raises:
        SystemExit: there is something to do for one of them.
    """
    settings = Settings()
    catalog = load_catalog(settings.tables)
    planner = Planner(catalog, settings)
    for table in tables:
        advice = planner.advise(catalog.spec(table), parse_intervals(day)[0])
        if not advice.nothing_new:
            raise SystemExit(f"{table} has something to do: {advice.message}")


if __name__ == "__main__":
    decide(sys.argv[1], sys.argv[2:])

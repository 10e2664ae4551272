"""The work of an Airflow worker for tables with nothing new: it calls the planner and starts nothing.

    python -m benchmarks.nothing_new DAY TABLE...     with LAKEHOUSE_ROOT and LAKEHOUSE_LANDING in the environment

These are the two calls of `lakehouse_airflow.operators.table_write`, without Airflow's own cost, which every task has.
"""

from __future__ import annotations

import sys

from millrace.catalog import load_catalog
from millrace.cli.selection import parse_intervals
from millrace.control.planning.planner import Planner
from millrace.settings import Settings


def decide(day: str, tables: list[str]) -> None:
    """Plan each table in turn.

    Raises:
        SystemExit: a table has something to do.
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

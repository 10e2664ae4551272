"""`make demo`: three days of real flights through a real Airflow, checked against their source."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from demo.backfill import DayOfBackfill, failed_tasks, restart_backfill, watch
from demo.lakehouse import NotTheDemosError, start_empty
from demo.oracle import expected_tables
from demo.outcome import TableOutcome, outcome_table, outcomes
from demo.progress import BackfillProgress
from demo.query import PrintedQueryError, place, query_line, run_line
from demo.source_system import lay_out
from embedded.address import Address
from embedded.airflow.api import AirflowApi
from embedded.clone import DEMO
from embedded.errors import StackError
from embedded.home import DEFAULT_HOME, Home
from embedded.interrupts import interrupt_once
from embedded.stack import Stack, remaining_processes
from millrace.settings import Settings

DOMAIN = "flights"
FIRST, LAST = date(2013, 1, 1), date(2013, 1, 3)
AT_ONCE = 2
PATIENCE_S = 900
SHOWN = (
    "SELECT flight_date, origin, dest, flights, cancelled, round(avg_arr_delay_min, 1) AS avg_arr_delay_min "
    "FROM gold.route_performance_daily ORDER BY flights DESC, flight_date, origin, dest LIMIT 5"
)


def main() -> None:
    """Run the demo; the exit code is 0 only when every number is right and no process is left."""
    interrupt_once()
    console = Console(highlight=False, soft_wrap=True)
    try:
        sys.exit(0 if demo(Home(DEFAULT_HOME), Settings(project=DEMO), console) else 1)
    except (StackError, NotTheDemosError, PrintedQueryError) as error:
        console.print(f"[red]{error}[/red]")
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("Stopped.")
        sys.exit(130)


def demo(home: Home, settings: Settings, console: Console) -> bool:
    """Lay out the data, run the backfill, check the tables; return whether all are right and no process is left."""
    began = time.monotonic()
    stack = Stack(home, settings, Address.free(home, settings))
    stack.claim()
    prepare(settings, console)
    days = run_backfill(stack, console)
    results = check(settings, days)
    console.print(outcome_table(results), "")
    right = not any(result.wrong for result in results) and all(day.run.state == "success" for day in days)
    if right:
        show_query(settings, console)
    if left := remaining_processes(home):
        console.print(f"[red]left behind: {left}[/red]")
    verdict = "[green]Every number is right" if right else "[red]Not everything is right"
    up = f"[bold]{escape(place(settings.root))}make up[/bold]"
    console.print(
        f"{verdict}[/], {time.monotonic() - began:.0f} s. The same Airflow in your browser: {up}", soft_wrap=True
    )
    return right and not left


def prepare(settings: Settings, console: Console) -> None:
    """Empty the lakehouse, and lay out the days as the source system would deliver them."""
    if start_empty(settings.root):
        console.print(f"Deleted the tables of the last demo in {settings.root}.")
    delivery = lay_out(Path(settings.landing), FIRST, LAST + timedelta(days=1))
    events = delivery.rows("flight_events")
    console.print(f"Laid out {FIRST} to {LAST} in {settings.landing}: {events:,} flight events, weather, planes.")


def run_backfill(stack: Stack, console: Console) -> list[DayOfBackfill]:
    """Start the stack, backfill the days, stop the stack; return the days with their final states."""
    with console.status("Starting PostgreSQL, Airflow and the Spark server"):
        stack.start()
    try:
        with stack.api() as api:
            console.print(f"Airflow runs at {stack.address.url}.")
            return backfill_days(api, console)
    finally:
        with console.status("Stopping Airflow, the Spark server and PostgreSQL"):
            stack.stop()


def backfill_days(api: AirflowApi, console: Console) -> list[DayOfBackfill]:
    """Backfill the days and show the progress; return the days with their final states."""
    api.wait_for_dag(DOMAIN)
    console.print(f"Backfilling {DOMAIN}, {AT_ONCE} days at once.")
    restart_backfill(api, DOMAIN, FIRST, LAST, AT_ONCE)
    days = BackfillProgress(console).show(watch(api, DOMAIN, FIRST, LAST, PATIENCE_S))
    api.set_paused(DOMAIN, True)
    explain_failures(api, days, console)
    return days


def explain_failures(api: AirflowApi, days: Sequence[DayOfBackfill], console: Console) -> None:
    """Print the end of the log of every task that failed."""
    for task in failed_tasks(days):
        console.print(f"[red]{task.task_id} of {task.dag_run_id} failed:[/red]")
        for line in api.log(task)[-8:]:
            console.print(f"  {line}", markup=False)


def check(settings: Settings, days: Sequence[DayOfBackfill]) -> list[TableOutcome]:
    """Compare every table with its expected rows, which DuckDB alone computes from the source."""
    oracle = expected_tables(Path(settings.landing), FIRST, LAST + timedelta(days=1))
    return outcomes(settings.root, oracle, days, oracle.counts())


def show_query(settings: Settings, console: Console) -> None:
    """Print a query, and its result."""
    line = query_line(settings.root, SHOWN)
    console.print("Query it, here the busiest routes:", f"  {line}", sep="\n", soft_wrap=True, markup=False)
    run_line(line)


if __name__ == "__main__":
    main()

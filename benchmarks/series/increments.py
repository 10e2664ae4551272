"""Series 18: the last five days of 2013, one after the other, through all three layers."""

from __future__ import annotations

import os
import sys
from datetime import date, timedelta
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost, FailedRunError, cpu_of_tree, measure
from benchmarks.deliveries import YEAR, delivered_lines, write_delivery
from benchmarks.peers import CHAIN, Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from demo.source_system import FIRST_DAY, lay_out
from embedded.clone import CLONE
from embedded.spark.running import running_server
from embedded.spark.server import NAME as SERVER
from embedded.spark.server import SparkServer
from embedded.stack_processes import recorded

DAY_BEFORE = date(2013, 12, 26)
"""The day that does not count; the five days after it do."""

DAYS = 5
TARGET = 0.35
OWN_DRIVER, WARM, N = "one driver a day", "warm Spark server", "N"


def run(bench: Bench) -> list[Result]:
    """Load the year without its last days on each side, then day after day; the day before them does not count.

    Raises:
        FailedRunError: a command fails.
        DifferentRowsError: a table is not the same on all sides.
    """
    folder = bench.fresh("increments")
    landing = _deliver(folder / "source", folder / "landing")
    places = {side: Place(folder / side.replace(" ", "_"), landing) for side in (OWN_DRIVER, WARM, N)}
    for side, place in places.items():
        bench.console.print(f"  {side}: the year before {DAY_BEFORE}")
        bench.write_chain(bench.naive if side == N else Millrace(large_load=True), place, YEAR)
    with running_server(folder / "spark") as server:
        sides = interleaved(
            {
                OWN_DRIVER: partial(_in_own_driver, bench, places[OWN_DRIVER]),
                WARM: partial(_by_server, bench, places[WARM], server),
                N: lambda number: bench.write_chain(bench.naive, places[N], _day(number)),
            },
            DAYS,
            bench.print_cost,
        )
    facts = {
        table: require_same_rows(table, place.table(table), places[N].table(table))
        for table in CHAIN
        for place in (places[OWN_DRIVER], places[WARM])
    }
    title = "a day of the flights through all layers, after a year"
    return [Result(f"{title}, {side}", side, N, sides, TARGET, facts) for side in (OWN_DRIVER, WARM)]


def _deliver(source: Path, landing: Path) -> Path:
    """Lay out the days before as one delivery, and the last days as the source system delivers them."""
    lay_out(source, FIRST_DAY, DAY_BEFORE)
    write_delivery(landing, YEAR, delivered_lines(source))
    lay_out(landing, DAY_BEFORE, DAY_BEFORE + timedelta(days=1 + DAYS))
    return landing


def _day(number: int) -> str:
    return f"{DAY_BEFORE + timedelta(days=number)}"


def _in_own_driver(bench: Bench, place: Place, number: int) -> Cost:
    return _lakehouse_run(bench, place, _day(number), Millrace().environment())


def _by_server(bench: Bench, place: Place, server: SparkServer, number: int) -> Cost:
    """Return the cost of the command and its driver, with what the server spent in that time."""
    process = recorded(server.home, SERVER)
    if process is None:
        raise FailedRunError("the Spark server has ended")
    before = cpu_of_tree(process.pid)
    cost = _lakehouse_run(bench, place, _day(number), {**os.environ, **server.client_env()})
    return Cost(cost.wall_s, cost.cpu_s + cpu_of_tree(process.pid) - before, cost.peak_mb)


def _lakehouse_run(bench: Bench, place: Place, day: str, environment: dict[str, str]) -> Cost:
    tables = [part for table in CHAIN for part in ("--table", table)]
    command = [str(Path(sys.executable).parent / "lakehouse"), "run", "--interval", day, *tables]
    places = {"LAKEHOUSE_ROOT": str(place.lake), "LAKEHOUSE_LANDING": str(place.landing), "PYTHONPATH": str(CLONE)}
    return measure(command, {**environment, **places}, bench.folder / "logs" / "increments.log").whole

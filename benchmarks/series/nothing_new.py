"""Series 2: a run of a day with nothing new, through all three layers."""

from __future__ import annotations

import sys

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.deliveries import DAY, one_day
from benchmarks.machine import JavaTrap
from benchmarks.peers import CHAIN, Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved

TARGET = 0.05


def run(bench: Bench) -> list[Result]:
    """Let both sides load a day, compare table by table, then let both load it again.

    Raises:
        FailedRunError: Millrace found something to do, or started Java.
    """
    landing = one_day(bench.folder / "day")
    millrace = Place(bench.fresh("nothing_new", "millrace"), landing)
    naive = Place(bench.fresh("nothing_new", "naive"), landing)
    bench.console.print("  both sides load the day")
    bench.write_chain(Millrace(), millrace, DAY)
    bench.write_chain(bench.naive, naive, DAY)
    rows = {table: require_same_rows(table, millrace.table(table), naive.table(table)) for table in CHAIN}
    sides = interleaved(
        {
            "one process": lambda number: _decide(bench, millrace, [list(CHAIN)]),
            "a process a table": lambda number: _decide(bench, millrace, [[table] for table in CHAIN]),
            "N": lambda number: bench.write_chain(bench.naive, naive, DAY),
        },
        bench.rounds,
        bench.print_cost,
    )
    return [
        Result("a run with nothing new, three tables in one process", "one process", "N", sides, TARGET, rows),
        Result("the same, a process a table", "a process a table", "N", sides, TARGET, rows),
    ]


def _decide(bench: Bench, place: Place, processes: list[list[str]]) -> Cost:
    return sum((_decide_in_process(bench, place, tables) for tables in processes), Cost(0, 0))


def _decide_in_process(bench: Bench, place: Place, tables: list[str]) -> Cost:
    trap = JavaTrap(bench.folder / "java_trap")
    environment = trap.environment(Millrace().environment())
    environment |= {"LAKEHOUSE_ROOT": str(place.lake), "LAKEHOUSE_LANDING": str(place.landing)}
    command = [sys.executable, "-m", "benchmarks.nothing_new", DAY, *tables]
    cost = measure(command, environment, bench.folder / "logs" / "nothing_new.log").whole
    if trap.was_sprung:
        raise FailedRunError(f"Java was started for {', '.join(tables)}, though there was nothing new")
    return cost

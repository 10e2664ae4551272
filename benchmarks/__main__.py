"""``python -m benchmarks``: measure Millrace against the naive peer."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.bench import Bench
from benchmarks.machine import QUIET, empty_job, load
from benchmarks.refreshing.choices import OTHER_CASES
from benchmarks.result import Result, result_table
from benchmarks.series import (
    ages,
    gold_choice,
    gold_growth,
    increments,
    jvm,
    nothing_new,
    overhead,
    pages,
    planning,
    start,
    table_diff,
    upkeep,
)
from benchmarks.series import load as load_files
from benchmarks.series.gates import gate, gate_growth, gate_share
from benchmarks.series.merges import merge, merge_growth, merge_shapes
from benchmarks.series.writing import days_at_once, goodput, sources_at_once, writers


class Series(StrEnum):
    """The series that can be measured."""

    START = "start"
    NOTHING_NEW = "nothing-new"
    MERGE = "merge"
    JVM = "jvm"
    PLANNING = "planning"
    GATE = "gate"
    GATE_GROWTH = "gate-growth"
    GATE_GROWTH_LARGE = "gate-growth-large"
    GATE_SHARE = "gate-share"
    LOAD = "load"
    LOAD_LARGE = "load-large"
    MERGE_GROWTH = "merge-growth"
    MERGE_GROWTH_LARGE = "merge-growth-large"
    MERGE_SHAPES = "merge-shapes"
    MERGE_SHAPES_LARGE = "merge-shapes-large"
    WRITERS = "writers"
    GOODPUT = "goodput"
    AGES = "ages"
    OVERHEAD = "overhead"
    PAGES = "pages"
    DAYS_AT_ONCE = "days-at-once"
    GOLD_CHOICE = "gold-choice"
    GOLD_CHOICE_OTHERS = "gold-choice-others"
    GOLD_GROWTH = "gold-growth"
    GOLD_GROWTH_LARGE = "gold-growth-large"
    INCREMENTS = "increments"
    SOURCES_AT_ONCE = "sources-at-once"
    TABLE_DIFF = "table-diff"
    UPKEEP = "upkeep"


RUN: dict[Series, Callable[[Bench], list[Result]]] = {
    Series.START: start.run,
    Series.NOTHING_NEW: nothing_new.run,
    Series.MERGE: merge.run,
    Series.JVM: jvm.run,
    Series.PLANNING: planning.run,
    Series.GATE: gate.run,
    Series.GATE_GROWTH: gate_growth.run,
    Series.GATE_GROWTH_LARGE: partial(gate_growth.run, sizes=(10**6, 10**7, 10**8)),
    Series.GATE_SHARE: gate_share.run,
    Series.LOAD: load_files.run_small,
    Series.LOAD_LARGE: load_files.run_large,
    Series.MERGE_GROWTH: merge_growth.run,
    Series.MERGE_GROWTH_LARGE: partial(merge_growth.run, sizes=(10**6, 10**7, 10**8)),
    Series.MERGE_SHAPES: merge_shapes.run,
    Series.MERGE_SHAPES_LARGE: partial(merge_shapes.run, rows=25 * 10**6),
    Series.WRITERS: writers.run,
    Series.GOODPUT: goodput.run,
    Series.AGES: ages.run,
    Series.OVERHEAD: overhead.run,
    Series.PAGES: pages.run,
    Series.DAYS_AT_ONCE: days_at_once.run,
    Series.GOLD_CHOICE: gold_choice.run,
    Series.GOLD_CHOICE_OTHERS: partial(gold_choice.run, cases=OTHER_CASES),
    Series.GOLD_GROWTH: gold_growth.run,
    Series.GOLD_GROWTH_LARGE: partial(gold_growth.run, sizes=(10**6, 10**7, 10**8)),
    Series.INCREMENTS: increments.run,
    Series.SOURCES_AT_ONCE: sources_at_once.run,
    Series.TABLE_DIFF: table_diff.run,
    Series.UPKEEP: upkeep.run,
}
AGAINST_N = [Series.START, Series.NOTHING_NEW, Series.MERGE]


def main(
    series: Annotated[
        list[Series] | None, typer.Argument(help="What to measure; by default the series against N.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Counted rounds, after an uncounted one.")] = 5,
    folder: Annotated[Path, typer.Option(help="Folder to work in; it keeps the year's tables.")] = Path(
        "data/benchmarks"
    ),
) -> None:
    """Run Millrace and the naive peer in turn; show CPU-seconds, wall time and their ratios."""
    # As an exception, so that the measured process ends, too.
    signal.signal(signal.SIGTERM, lambda signum, _frame: sys.exit(128 + signum))
    bench = Bench(folder.resolve(), rounds)
    out = bench.console
    floor = empty_job(bench.naive, bench.folder / "empty_job")
    busy = "" if load() <= QUIET else f" The machine is not quiet (load {load():.1f}): only CPU ratios count."
    cost = f"an empty job of N costs {floor.cpu_s:.1f} CPU-s, {floor.wall_s:.1f} s"
    out.print(f"{os.cpu_count()} cores; {cost}.{busy}", highlight=False)
    results: list[Result] = []
    for name in series or AGAINST_N:
        out.rule(name)
        results += RUN[name](bench)
        (bench.folder / f"{name}.json").write_text(json.dumps([result.to_json() for result in results], indent=1))
    out.print(result_table(results))
    for result in results:
        for what, fact in result.facts.items():
            out.print(f"{result.measured}: {what}: {fact}", highlight=False)


if __name__ == "__main__":
    app = typer.Typer(context_settings={"help_option_names": ["-h", "--help"]})
    app.command()(main)
    app()

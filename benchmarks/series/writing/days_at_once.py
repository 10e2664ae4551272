"""Series 16: two days of files into one bronze table at once: with streams, without, and by plain Spark."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.cost import Cost, FailedRunError, measure
from benchmarks.loading.flights import COLUMNS, DAY, FILES, TABLE, delivered
from benchmarks.peers import Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from include.settings import PROJECT

STREAMS, ONE_STREAM, PLAIN = "Millrace, two streams", "Millrace, one stream", "plain Spark to Delta"
BEFORE, DAYS = "2012-12-31", (DAY, "2013-01-02")
ROWS = 1_000_000
THROUGHPUT = 0.95
"""The smallest good throughput of two drivers with streams, as a part of that of two plain appends."""

Command = Callable[[Path, str], tuple[Sequence[str], Mapping[str, str]]]
"""Returns the command that loads a day into the tables below a folder, and its environment."""


def run(bench: Bench) -> list[Result]:
    """Load both days by two drivers that start together, into a table that has a small day."""
    folder = bench.folder / "days-at-once"
    landing = delivered(folder, "parquet", ROWS)
    _deliver(landing, BEFORE, files=1)
    _deliver(landing, DAYS[1], files=FILES)
    commands = _commands(bench, folder, landing)
    for name, command in commands.items():
        _load(bench, name, command, bench.fresh(str(_before(folder, name))), [BEFORE])

    def both_days(name: str, command: Command) -> Callable[[int], Cost]:
        def run_once(number: int) -> Cost:
            lake = bench.fresh(str(_lake(folder, name)))
            shutil.copytree(_before(folder, name), lake)
            return _load(bench, name, command, lake, DAYS)

        return run_once

    sides = interleaved(
        {name: both_days(name, command) for name, command in commands.items()}, bench.rounds, bench.print_cost
    )
    relations = {name: f"delta_scan('{_table(_lake(folder, name), name)}')" for name in commands}
    if (found := require_same_digest(tuple(COLUMNS), relations)) < 2 * ROWS:
        raise FailedRunError(f"the sides loaded {found:,} rows, and two days have {2 * ROWS:,}")
    measured = f"two days of {ROWS:,} rows at once, against"
    return [
        Result(f"{measured} {PLAIN}", STREAMS, PLAIN, sides, wall_target=round(1 / THROUGHPUT, 3)),
        Result(f"{measured} {ONE_STREAM}", STREAMS, ONE_STREAM, sides),
    ]


def _commands(bench: Bench, folder: Path, landing: Path) -> dict[str, Command]:
    spec = Path("bronze") / "bench" / "many_flights.yaml"
    document = yaml.safe_load((folder / "tables" / spec).read_text())
    with_streams = folder / "tables_with_streams" / spec
    with_streams.parent.mkdir(parents=True, exist_ok=True)
    with_streams.write_text(yaml.safe_dump({**document, "concurrent_by": "interval"}, sort_keys=False))

    def millrace(tables: Path) -> Command:
        peer = Millrace(tables=tables)
        return lambda lake, day: (peer.writer(TABLE, Place(lake, landing), day), peer.environment())

    def plain(lake: Path, day: str) -> tuple[Sequence[str], Mapping[str, str]]:
        script, source = PROJECT / "benchmarks" / "loading" / "by_spark.py", landing / "flights" / f"date={day}"
        command = [*bench.naive.submit(), script, source, "parquet", _table(lake, PLAIN), "delta"]
        return [str(part) for part in command], {**bench.naive.environment(), "PYTHONPATH": str(PROJECT)}

    return {
        STREAMS: millrace(folder / "tables_with_streams"),
        ONE_STREAM: millrace(folder / "tables"),
        PLAIN: plain,
    }


def _load(bench: Bench, name: str, command: Command, lake: Path, days: Sequence[str]) -> Cost:
    """Load days at once, a driver for each; return the time until the last one ends, and the CPU of all."""

    def load(day: str) -> Cost:
        return measure(*command(lake, day), bench.folder / "logs" / f"days.{name}.{day}.log").whole

    with ThreadPoolExecutor(len(days)) as drivers:
        costs = list(drivers.map(load, days))
    return Cost(
        max(cost.wall_s for cost in costs),
        sum(cost.cpu_s for cost in costs),
        max(cost.peak_mb for cost in costs),
    )


def _deliver(landing: Path, day: str, files: int) -> None:
    """Deliver the first files of the first day once more, as those of another day."""
    folder = landing / "flights" / f"date={day}"
    if folder.exists():
        return
    folder.mkdir()
    for number in range(files):
        name = f"flights-{number}.parquet"
        os.link(landing / "flights" / f"date={DAY}" / name, folder / name)


def _lake(folder: Path, name: str) -> Path:
    return folder / "lakes" / name.replace(" ", "_").replace(",", "")


def _before(folder: Path, name: str) -> Path:
    return folder / "before" / _lake(folder, name).name


def _table(lake: Path, name: str) -> Path:
    return lake / "many_flights" if name == PLAIN else Place(lake, lake).table(TABLE)

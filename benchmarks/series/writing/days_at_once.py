"""Series 16: two days of files into one bronze table at once: with streams, without, and by plain Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.contention.at_once import ONE_STREAM, STREAMS, AtOnce, Command, results
from benchmarks.cost import FailedRunError
from benchmarks.loading.flights import COLUMNS, DAY, FILES, TABLE, delivered
from benchmarks.peers import Millrace, Naive, Place
from benchmarks.result import Result
from embedded.clone import CLONE

NAME, PLAIN, PLAIN_ALIKE = "days-at-once", "plain Spark to Delta", "plain Spark to Delta, same settings"
BEFORE, DAYS = "2012-12-31", (DAY, "2013-01-02")
ROWS = 1_000_000


def run(bench: Bench) -> list[Result]:
    """Load both days by two drivers that start together, into a table that has a small day."""
    folder = bench.folder / NAME
    landing = delivered(folder, "parquet", ROWS)
    _deliver(landing, BEFORE, files=1)
    _deliver(landing, DAYS[1], files=FILES)
    loads = AtOnce(bench, NAME, _commands(bench, folder, landing))
    for side in loads.commands:
        loads.run(side, bench.fresh(str(loads.before(side))), [BEFORE])
    sides = loads.measure(DAYS)
    relations = {side: f"delta_scan('{_table(loads.lake(side), side)}')" for side in sides}
    if (found := require_same_digest(tuple(COLUMNS), relations)) < 2 * ROWS:
        raise FailedRunError(f"the sides loaded {found:,} rows, and two days have {2 * ROWS:,}")
    work = f"two days of {ROWS:,} rows at once"
    alike = Result(f"{work}, against {PLAIN_ALIKE}", STREAMS, PLAIN_ALIKE, sides)
    return [*results(work, PLAIN, sides), alike]


def _commands(bench: Bench, folder: Path, landing: Path) -> dict[str, Command]:
    spec = Path("bronze") / "bench" / "many_flights.yaml"
    document = yaml.safe_load((folder / "tables" / spec).read_text())
    with_streams = folder / "tables_with_streams" / spec
    with_streams.parent.mkdir(parents=True, exist_ok=True)
    with_streams.write_text(yaml.safe_dump({**document, "concurrent_by": "interval"}, sort_keys=False))

    def millrace(tables: Path) -> Command:
        peer = Millrace(tables=tables)
        return lambda lake, day: (peer.writer(TABLE, Place(lake, landing), day), peer.environment())

    def plain(peer: Naive | Millrace) -> Command:
        def command(lake: Path, day: str) -> tuple[Sequence[str], Mapping[str, str]]:
            script, source = CLONE / "benchmarks" / "loading" / "by_spark.py", landing / "flights" / f"date={day}"
            arguments = (str(source), "parquet", str(_table(lake, PLAIN)), "delta")
            return peer.application(script, *arguments), {**peer.environment(), "PYTHONPATH": str(CLONE)}

        return command

    return {
        STREAMS: millrace(folder / "tables_with_streams"),
        ONE_STREAM: millrace(folder / "tables"),
        PLAIN: plain(bench.naive),
        PLAIN_ALIKE: plain(Millrace()),
    }


def _deliver(landing: Path, day: str, files: int) -> None:
    """Deliver the first files of the first day once more, as those of another day."""
    folder = landing / "flights" / f"date={day}"
    if folder.exists():
        return
    folder.mkdir()
    for number in range(files):
        name = f"flights-{number}.parquet"
        os.link(landing / "flights" / f"date={DAY}" / name, folder / name)


def _table(lake: Path, side: str) -> Path:
    return lake / "many_flights" if side in (PLAIN, PLAIN_ALIKE) else Place(lake, lake).table(TABLE)

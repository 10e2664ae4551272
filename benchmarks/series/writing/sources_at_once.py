"""Series 21: two sources merged into one silver table at once: with streams, without, and by plain Spark."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.contention.at_once import ONE_STREAM, STREAMS, AtOnce, Command, results
from benchmarks.cost import measure
from benchmarks.merging.orders import CHANGED, COLUMNS, LOADED, SILVER
from benchmarks.merging.sources import COUNTRIES, deliver_sources, write_source_specs
from benchmarks.peers import Millrace, Naive, Place
from benchmarks.result import Result
from benchmarks.table_files import files_and_bytes, linked_copy, newest_commit
from embedded.clone import CLONE
from millrace.contracts.job.args import Job
from millrace.paths import OWN, RunPaths

NAME, PLAIN, PLAIN_ALIKE = "sources-at-once", "two plain MERGEs", "two plain MERGEs, same settings"
ROWS, CHANGES = 1_000_000, 200_000
"""The orders of each source before the measured merge, and its events."""

_NEXT_DAY = "2025-01-03"
DAYS = dict(zip(COUNTRIES, (CHANGED, _NEXT_DAY), strict=True))
"""Source -> the interval of one of Millrace's drivers. Two intervals that follow each other begin at other sources."""


def run(bench: Bench, rows: int = ROWS, changes: int = CHANGES) -> list[Result]:
    """Merge new and changed rows of both sources by two drivers that start together."""
    lakes = _Lakes(bench, rows, changes)
    merges = AtOnce(bench, NAME, lakes.commands)
    lakes.load({side: merges.before(side) for side in merges.commands})
    sides = merges.measure(tuple(COUNTRIES))
    tables = {side: _table(merges.lake(side)) for side in sides}
    relations = {side: f"delta_scan('{table}')" for side, table in tables.items()}
    work = f"{changes:,} rows of each of two sources merged at once into {2 * rows:,}"
    facts = {
        "rows after": require_same_digest(tuple(COLUMNS), relations),
        "files before": {side: files_and_bytes(_table(merges.before(side))) for side in sides},
        "last commit": {side: newest_commit(table) for side, table in tables.items()},
        "seconds of the last round": {side: _spans(merges.lake(side)) for side in (STREAMS, ONE_STREAM)},
    }
    alike = Result(f"{work}, against {PLAIN_ALIKE}", STREAMS, PLAIN_ALIKE, sides, facts=facts)
    return [*results(work, PLAIN, sides), alike]


class _Lakes:
    """The tables of each side before the measured merge.

    Attributes:
        commands: side -> the merge of a source.
    """

    def __init__(self, bench: Bench, rows: int, changes: int) -> None:
        self._bench, self._rows, self._changes = bench, rows, changes
        self._folder = bench.folder / NAME
        self._landing = self._folder / "landing"
        self._tables = {
            side: write_source_specs(self._folder / "tables" / str(number), concurrent=side == STREAMS)
            for number, side in enumerate((STREAMS, ONE_STREAM))
        }
        self.commands: dict[str, Command] = {side: self._millrace(side) for side in self._tables}
        self.commands[PLAIN] = self._plain(CHANGED, bench.naive)
        self.commands[PLAIN_ALIKE] = self._plain(CHANGED, Millrace())

    def load(self, places: Mapping[str, Path]) -> None:
        """Load each side's tables once: the first day into both layers, and the second day into bronze."""
        done = self._folder / "complete"
        size = f"{self._rows} {self._changes}"
        if done.exists() and done.read_text() == size:
            return
        done.unlink(missing_ok=True)
        self._bench.fresh(str(self._landing))
        self._bench.console.print(f"  {self._rows:,} orders of each source are loaded")
        deliver_sources(self._landing, self._rows, self._changes)
        loaded = self._bench.fresh(str(self._folder / "loaded"))
        self._write(ONE_STREAM, loaded, COUNTRIES, LOADED)
        for side in self._tables:
            linked_copy(loaded, places[side])
            self._write(side, places[side], [SILVER], LOADED)
            self._write(side, places[side], COUNTRIES, CHANGED)
        self._bench.fresh(str(places[PLAIN]))
        for source in COUNTRIES:
            linked_copy(*(Place(places[side], self._landing).table(source) for side in (ONE_STREAM, PLAIN)))
            measure(*self._plain(LOADED, self._bench.naive)(places[PLAIN], source), self._log(f"{PLAIN}.{source}"))
        linked_copy(places[PLAIN], places[PLAIN_ALIKE])
        done.write_text(size)

    def _write(self, side: str, lake: Path, tables: Iterable[str], day: str) -> None:
        peer = Millrace(tables=self._tables[side], large_load=True)
        for table in tables:
            command = peer.writer(table, Place(lake, self._landing), day)
            measure(command, peer.environment(), self._log(f"{side}.{table}.{day}"))

    def _millrace(self, side: str) -> Command:
        peer = Millrace(tables=self._tables[side])

        def command(lake: Path, source: str) -> tuple[Sequence[str], Mapping[str, str]]:
            return peer.writer(SILVER, Place(lake, self._landing), DAYS[source]), peer.environment()

        return command

    def _plain(self, day: str, peer: Naive | Millrace) -> Command:
        def command(lake: Path, source: str) -> tuple[Sequence[str], Mapping[str, str]]:
            script, place = CLONE / "benchmarks" / "merging" / "by_spark.py", Place(lake, self._landing)
            arguments = (str(place.table(source)), str(place.table(SILVER)), day, *COUNTRIES[source])
            return peer.application(script, *arguments), peer.environment()

        return command

    def _log(self, name: str) -> Path:
        return self._bench.folder / "logs" / f"{NAME}.load.{name}.log"


def _table(lake: Path) -> Path:
    return Place(lake, lake).table(SILVER)


def _spans(lake: Path) -> dict[str, dict[str, object]]:
    """Return where the time of each driver went, by its report."""
    folder = RunPaths(lake / OWN).reports / "benchmark"
    reports = {
        day: json.loads((folder / day / f"{SILVER}.{Job.SILVER_MERGE}.json").read_text()) for day in DAYS.values()
    }
    return {day: {**report["timings_s"], "waited": report["waited_s"]} for day, report in reports.items()}

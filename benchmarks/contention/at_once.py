"""The cost of drivers that start together: of Millrace with several streams, with one, and of plain Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import Cost, measure
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved
from benchmarks.table_files import linked_copy

STREAMS, ONE_STREAM = "Millrace, two streams", "Millrace, one stream"
THROUGHPUT = 0.95
"""The smallest good throughput of two drivers with streams, as a part of that of two plain Spark jobs."""

Command = Callable[[Path, str], tuple[Sequence[str], Mapping[str, str]]]
"""Returns the command that does a part of the work on the tables below a folder, and its environment."""


@dataclass(frozen=True)
class AtOnce:
    """Sides that do the same parts of a work, each by a driver for every part.

    Attributes:
        bench: where to work.
        name: the series.
        commands: side -> the command of a part.
    """

    bench: Bench
    name: str
    commands: Mapping[str, Command]

    def before(self, side: str) -> Path:
        """Return the folder of a side's tables as they are before each round."""
        return self.bench.folder / self.name / "before" / _folder_name(side)

    def lake(self, side: str) -> Path:
        """Return the folder of a side's tables in a round."""
        return self.bench.folder / self.name / "lakes" / _folder_name(side)

    def run(self, side: str, lake: Path, parts: Sequence[str]) -> Cost:
        """Start a driver for each part; return the time until the last one ends, and the CPU of all."""

        def drive(part: str) -> Cost:
            log = self.bench.folder / "logs" / f"{self.name}.{side}.{part}.log"
            return measure(*self.commands[side](lake, part), log).whole

        with ThreadPoolExecutor(len(parts)) as drivers:
            costs = list(drivers.map(drive, parts))
        return Cost(
            max(cost.wall_s for cost in costs),
            sum(cost.cpu_s for cost in costs),
            max(cost.peak_mb for cost in costs),
        )

    def measure(self, parts: Sequence[str]) -> dict[str, Side]:
        """Return the rounds of all sides, in turn, each on a fresh copy of its tables."""

        def run_of(side: str) -> Callable[[int], Cost]:
            return lambda _number: self.run(side, linked_copy(self.before(side), self.lake(side)), parts)

        return interleaved({side: run_of(side) for side in self.commands}, self.bench.rounds, self.bench.print_cost)


def results(work: str, plain: str, sides: dict[str, Side]) -> list[Result]:
    """Return the figures of two streams: against plain Spark, with a target, and against one stream."""
    return [
        Result(f"{work}, against {plain}", STREAMS, plain, sides, wall_target=round(1 / THROUGHPUT, 3)),
        Result(f"{work}, against {ONE_STREAM}", STREAMS, ONE_STREAM, sides),
    ]


def _folder_name(side: str) -> str:
    return side.replace(" ", "_").replace(",", "")

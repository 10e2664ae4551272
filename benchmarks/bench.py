"""The context of every series: its folder, the number of rounds, the console."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.cost import Cost, measure
from benchmarks.machine import load
from benchmarks.peers import CHAIN, Naive, Peer, Place
from millrace.cli.output import console


@dataclass(frozen=True)
class Bench:
    """One run of the benchmarks.

    Attributes:
        folder: the folder of all files.
        rounds: the number of counted rounds, after an uncounted one.
        console: the console for the progress.
    """

    folder: Path
    rounds: int
    console: Console = field(default_factory=console)

    @property
    def naive(self) -> Naive:
        """The peer N."""
        return Naive(self.folder / "ivy")

    def fresh(self, *names: str) -> Path:
        """Return a folder that does not exist, below the bench's own; an earlier run's folder is removed."""
        path = self.folder.joinpath(*names)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def print_cost(self, number: int, side: str, cost: Cost) -> None:
        """Print the cost of a run, and the load of the machine."""
        counts = f"round {number} of {self.rounds}" if number else "not counted"
        spent = f"{cost.cpu_s:.1f} CPU-s, {cost.wall_s:.1f} s, {cost.peak_mb:.0f} MB, load {load():.1f}"
        self.console.print(f"  {counts}: {side}: {spent}", highlight=False)

    def write(self, peer: Peer, table: str, place: Place, day: str) -> Cost:
        """Write one table for one day."""
        log = self.folder / "logs" / f"{peer.name}.{table}.{day}.log"
        return measure(peer.writer(table, place, day), peer.environment(), log).whole

    def write_chain(self, peer: Peer, place: Place, day: str) -> Cost:
        """Write all tables for one day, one submit each."""
        bronze, *others = (self.write(peer, table, place, day) for table in CHAIN)
        return sum(others, bronze)

"""What every series has at hand: where to work, how many rounds, whom to tell."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from benchmarks.cost import Cost, measure
from benchmarks.machine import load
from benchmarks.peers import CHAIN, Naive, Peer, Place
from include.cli.output import console


@dataclass(frozen=True)
class Bench:
    """One run of the benchmarks.

    Attributes:
        folder: everything is made below it.
        rounds: how many rounds count, after one that does not.
        console: told what runs.
    """

    folder: Path
    rounds: int
    console: Console = field(default_factory=console)

    @property
    def naive(self) -> Naive:
        """The peer N."""
        return Naive(self.folder / "ivy")

    def fresh(self, *names: str) -> Path:
        """A folder below the bench's own that does not exist yet; what an earlier run left there is removed."""
        path = self.folder.joinpath(*names)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def ended(self, number: int, side: str, cost: Cost) -> None:
        """Say what a run cost, and how busy the machine was."""
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

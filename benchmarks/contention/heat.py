"""One heat: a number of writers for a time, with one strategy; and its score."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.cost import Cost


class Strategy(StrEnum):
    """How writers of one table avoid or handle conflicts."""

    MILLRACE = "Millrace"
    BACK_OFF = "plain MERGE, back-off"
    QUEUE = "plain MERGE, one at a time"


class Keys(StrEnum):
    """The rows that the writers merge into."""

    DISJOINT = "a partition each, a stream each"
    TURNS = "a partition each, one stream"
    OVERLAP = "the same keys"


@dataclass(frozen=True)
class Heat:
    """The parameters of a heat.

    Attributes:
        strategy: how they get on.
        keys: what they merge into.
        writers: how many.
        optimize: whether somebody optimizes the table all the while.
        seconds: no merge begins after so long.
        number: the round, 0 for one that does not count.
    """

    strategy: Strategy
    keys: Keys
    writers: int
    optimize: bool
    seconds: float
    number: int

    @property
    def scenario(self) -> str:
        """The parameters that are equal for all strategies."""
        beside = ", OPTIMIZE beside them" if self.optimize else ""
        return f"{self.keys}{beside}: {self.writers} writer{'s' if self.writers > 1 else ''}"


@dataclass(frozen=True)
class Score:
    """The result of a heat.

    Attributes:
        commits: how many merges each writer has committed.
        conflicts: how often a merge lost to another commit, and was done again.
        lost: merges that were acknowledged and whose rows are not there; less than none if rows count twice.
        optimized: how often OPTIMIZE has come to its end.
        wall_s: from the start of the first writer to the end of the last.
        cpu_s: of the driver in the meantime, JVM and Python.
    """

    commits: list[int]
    conflicts: int
    lost: int
    optimized: int
    wall_s: float
    cpu_s: float

    @property
    def all(self) -> int:
        """The number of merges of all writers."""
        return sum(self.commits)

    @property
    def a_commit(self) -> Cost:
        """The cost of one merge, its share of time and CPU; the inverse of the goodput.

        >>> Score([3, 5], 0, 0, 0, wall_s=4.0, cpu_s=6.0).a_commit
        Cost(wall_s=0.5, cpu_s=0.75, peak_mb=0.0)
        """
        return Cost(self.wall_s / self.all, self.cpu_s / self.all)

    @property
    def fairness(self) -> float:
        """The commits of the unluckiest writer over those of the luckiest.

        >>> Score([3, 4], 0, 0, 0, 1.0, 1.0).fairness
        0.75
        """
        return min(self.commits) / max(self.commits) if max(self.commits) else 0.0


def write_heats(path: Path, heats: list[Heat]) -> Path:
    """Write heats to a file, one per line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(asdict(heat))}\n" for heat in heats))
    return path


def read_heats(path: Path) -> list[Heat]:
    """Read the heats that `write_heats` wrote."""
    return [TypeAdapter(Heat).validate_json(line) for line in path.read_text().splitlines()]


def note_score(path: Path, score: Score) -> None:
    """Append a score to a file."""
    with path.open("a") as out:
        out.write(f"{json.dumps(asdict(score))}\n")


def read_scores(path: Path) -> list[Score]:
    """Read the scores that `note_score` wrote."""
    return [Score(**json.loads(line)) for line in path.read_text().splitlines()]

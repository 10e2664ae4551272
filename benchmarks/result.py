"""A figure of the benchmarks: two sides, their ratio, the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.rounds import Ratio, Side, cpu_ratio, wall_ratio


@dataclass(frozen=True)
class Result:
    """What was measured.

    Attributes:
        measured: in one line.
        of: the side whose cost is judged.
        against: the side that it is compared with.
        sides: name -> rounds; holds both.
        target: the largest ratio of CPU-seconds that is good; None where there is no target.
        facts: what belongs to the figures: rows, files, bytes.
        wall_target: the largest ratio of wall times that is good, where time is what is judged.
    """

    measured: str
    of: str
    against: str
    sides: dict[str, Side]
    target: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    wall_target: float | None = None

    @property
    def is_met(self) -> bool:
        """Whether the targets are met; without one they are."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return _is_met(cpu, self.target) and _is_met(wall, self.wall_target)

    def to_json(self) -> dict[str, Any]:
        """Everything that was measured, every round of it."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return {**asdict(self), "cpu_ratio": asdict(cpu), "wall_ratio": asdict(wall), "is_met": self.is_met}

    def cells(self) -> list[str]:
        """The row of `result_table`."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return [self.measured, _cell(self.sides[self.against]), _cell(self.sides[self.of]),
                _judged(cpu, self.target), _judged(wall, self.wall_target)]  # fmt: skip

    @property
    def _pair(self) -> tuple[Side, Side]:
        return self.sides[self.of], self.sides[self.against]


def result_table(results: list[Result]) -> Table:
    """The results for a terminal; each target beside its ratio, which is red where it is above."""
    table = Table("measured", "against: CPU / wall", "of: CPU / wall", "CPU ratio (range)", "wall ratio (range)")
    for result in results:
        table.add_row(*result.cells())
    return table


def _cell(side: Side) -> str:
    return f"{side.cpu_s:.1f} s / {side.wall_s:.1f} s"


def _is_met(ratio: Ratio, target: float | None) -> bool:
    return target is None or ratio.median <= target


def _judged(ratio: Ratio, target: float | None) -> str:
    said = f"{ratio.median:.3f} ({ratio.least:.3f}-{ratio.greatest:.3f})"
    if target is None:
        return said
    style = "green" if _is_met(ratio, target) else "red"
    return f"[{style}]{said}[/{style}], at most {target}"

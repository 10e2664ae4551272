"""A figure of the benchmarks: two sides, their ratio, the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.rounds import Side, cpu_ratio, wall_ratio


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
    """

    measured: str
    of: str
    against: str
    sides: dict[str, Side]
    target: float | None = None
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_met(self) -> bool:
        """Whether the target is met; without one it is."""
        return self.target is None or cpu_ratio(*self._pair).median <= self.target

    def to_json(self) -> dict[str, Any]:
        """Everything that was measured, every round of it."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return {**asdict(self), "cpu_ratio": asdict(cpu), "wall_ratio": asdict(wall), "is_met": self.is_met}

    def cells(self) -> list[str]:
        """The row of `result_table`."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        ratio = f"{cpu.median:.3f} ({cpu.least:.3f}-{cpu.greatest:.3f})"
        style = "green" if self.is_met else "red"
        judged = f"[{style}]{ratio}[/{style}]" if self.target is not None else ratio
        target = "" if self.target is None else f"{self.target}"
        return [self.measured, _cell(self.sides[self.against]), _cell(self.sides[self.of]), judged,
                f"{wall.median:.3f}", target]  # fmt: skip

    @property
    def _pair(self) -> tuple[Side, Side]:
        return self.sides[self.of], self.sides[self.against]


def result_table(results: list[Result]) -> Table:
    """The results for a terminal; a ratio above its target is red."""
    table = Table("measured", "against: CPU / wall", "of: CPU / wall", "CPU ratio (range)", "wall ratio", "target")
    for result in results:
        table.add_row(*result.cells())
    return table


def _cell(side: Side) -> str:
    return f"{side.cpu_s:.1f} s / {side.wall_s:.1f} s"

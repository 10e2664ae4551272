"""A figure of the benchmarks: two sides, their ratio, the target."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from rich.table import Table

from benchmarks.rounds import Ratio, Side, cpu_ratio, wall_ratio


@dataclass(frozen=True)
class Result:
    """The result of a measurement.

    Attributes:
        measured: what was measured, in one line.
        of: the side whose cost is evaluated.
        against: the side to compare with.
        sides: name -> rounds, for both sides.
        target: the largest good ratio of CPU-seconds; None for no target.
        facts: further figures: rows, files, bytes.
        wall_target: the largest good ratio of wall times; None for no target.
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
        """Whether all targets are met."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return _is_met(cpu, self.target) and _is_met(wall, self.wall_target)

    def to_json(self) -> dict[str, Any]:
        """Return all figures, with those of every round."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return {**asdict(self), "cpu_ratio": asdict(cpu), "wall_ratio": asdict(wall), "is_met": self.is_met}

    def cells(self) -> list[str]:
        """Return the row of `result_table`."""
        cpu, wall = cpu_ratio(*self._pair), wall_ratio(*self._pair)
        return [self.measured, _cell(self.sides[self.against]), _cell(self.sides[self.of]),
                _ratio_cell(cpu, self.target), _ratio_cell(wall, self.wall_target)]  # fmt: skip

    @property
    def _pair(self) -> tuple[Side, Side]:
        return self.sides[self.of], self.sides[self.against]


def result_table(results: list[Result]) -> Table:
    """Return the results for a terminal; a ratio above its target is red."""
    table = Table("measured", "against: CPU / wall", "of: CPU / wall", "CPU ratio (range)", "wall ratio (range)")
    for result in results:
        table.add_row(*result.cells())
    return table


def _cell(side: Side) -> str:
    return f"{side.cpu_s:.1f} s / {side.wall_s:.1f} s"


def _is_met(ratio: Ratio, target: float | None) -> bool:
    return target is None or ratio.median <= target


def _ratio_cell(ratio: Ratio, target: float | None) -> str:
    text = f"{ratio.median:.3f} ({ratio.least:.3f}-{ratio.greatest:.3f})"
    if target is None:
        return text
    style = "green" if _is_met(ratio, target) else "red"
    return f"[{style}]{text}[/{style}], at most {target}"

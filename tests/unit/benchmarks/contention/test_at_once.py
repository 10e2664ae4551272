"""The cost of drivers that work at the same time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.contention.at_once import AtOnce


def test_drivers_that_start_together_cost_the_longest_time_and_the_cpu_of_all(tmp_path: Path) -> None:
    def sleep(lake: Path, part: str) -> tuple[Sequence[str], Mapping[str, str]]:
        there, other = (lake / name for name in (part, "1.0" if part == "0.1" else "0.1"))
        meet = f"open({str(there)!r}, 'w')\nwhile not os.path.exists({str(other)!r}): time.sleep(0.01)"
        return [sys.executable, "-c", f"import os, time\n{meet}\ntime.sleep({part})"], {}

    naps = AtOnce(Bench(tmp_path, rounds=1), "naps", {"sleepers": sleep})
    cost = naps.run("sleepers", tmp_path, ["0.1", "1.0"])

    assert cost.wall_s >= 1.0
    assert cost.cpu_s > 0
    assert cost.peak_mb > 0

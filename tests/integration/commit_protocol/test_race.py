"""Writers without a lease race for the same files and are killed anywhere: what each scheme loses or doubles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]


def run_races(scheme: str, seeds: int, folder: Path) -> dict[str, int]:
    """The summed score of `seeds` races, run in a process of their own, since they fork."""
    command = [sys.executable, "-m", "tests.support.protocol_race.race", scheme, "0", str(seeds), str(folder)]
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT}"}
    ended = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=500)
    assert ended.returncode == 0, ended.stderr[-2000:]
    return json.loads(ended.stdout)


def test_the_protocol_loses_and_doubles_nothing_whatever_dies_when(tmp_path: Path) -> None:
    score = run_races("millrace", 3, tmp_path)
    assert score["deaths"] >= 4, "too few writers died for the race to mean anything"
    assert score["finished"] == 3
    assert (score["lost"], score["doubled"]) == (0, 0)


def test_the_race_catches_a_scheme_that_trusts_the_ledger(tmp_path: Path) -> None:
    lost = (run_races("trust the ledger", 1, tmp_path / str(attempt))["lost"] for attempt in range(6))
    assert any(lost)

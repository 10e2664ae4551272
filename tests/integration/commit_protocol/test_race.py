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


@pytest.mark.parametrize(
    ("scheme", "fault"),
    [
        ("trust the ledger", "lost"),
        pytest.param("number by ledger", "doubled", marks=pytest.mark.faults),
        pytest.param("quarantine first", "lost", marks=pytest.mark.faults),
    ],
)
def test_the_race_catches_each_scheme_that_was_tried_and_broken(tmp_path: Path, scheme: str, fault: str) -> None:
    score = {"lost": 0, "doubled": 0}
    for attempt in range(6):
        score = run_races(scheme, 1, tmp_path / str(attempt))
        if score[fault]:
            break
    assert score[fault] > 0

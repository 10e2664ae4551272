from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run(landing: Path, start: str, end: str) -> subprocess.CompletedProcess[str]:
    arguments = ["--landing", str(landing), "--start", start, "--end", end]
    return subprocess.run(
        [sys.executable, "-m", "demo.source_system", *arguments],
        check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def test_the_command_lays_out_the_days_and_says_what_it_delivered(tmp_path: Path) -> None:
    done = run(tmp_path, "2013-01-01", "2013-01-02")
    assert done.returncode == 0, done.stderr
    assert "2,119" in done.stdout
    assert sorted(file.name for file in tmp_path.rglob("*.*") if file.is_file()) == [
        "flight_events_00.json.gz", "flight_events_01.json.gz", "planes.csv", "weather.csv",
    ]  # fmt: skip


def test_the_command_explains_itself_by_both_options_for_help() -> None:
    for option in ("-h", "--help"):
        done = subprocess.run(
            [sys.executable, "-m", "demo.source_system", option],
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        assert "--landing" in done.stdout


def test_the_command_refuses_days_without_data_and_says_which_ones_there_are(tmp_path: Path) -> None:
    done = run(tmp_path, "2015-01-01", "2015-01-02")
    assert done.returncode == 2
    assert "2012-12-31" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

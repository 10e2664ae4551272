"""What a measured process costs: its whole tree, and nothing but it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.cost import FailedRunError, measure

SPIN = "import time; end = time.process_time() + {s}\nwhile time.process_time() < end: pass\n"


def test_a_process_is_charged_for_its_children_until_the_awaited_file_and_to_its_end(tmp_path: Path) -> None:
    awaited, child = tmp_path / "commit", SPIN.format(s=0.2)
    run_child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    work = f"{run_child}\nopen({str(awaited)!r}, 'w').close()\n{SPIN.format(s=0.4)}"
    measured = measure([sys.executable, "-c", work], os.environ, tmp_path / "log", awaited)
    assert measured.until is not None
    assert 0.2 <= measured.until.cpu_s < measured.whole.cpu_s - 0.2
    assert measured.until.wall_s < measured.whole.wall_s
    assert measured.whole.cpu_s < 2
    assert measured.whole.peak_mb > 1


def test_a_run_that_fails_or_does_not_commit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FailedRunError, match="did not appear"):
        measure(["true"], os.environ, tmp_path / "log", tmp_path / "commit")
    with pytest.raises(FailedRunError, match=r"exit code 3 .*\n.*no such table"):
        measure(["sh", "-c", "echo no such table >&2; exit 3"], os.environ, tmp_path / "log")


def test_an_interrupted_measurement_leaves_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []

    def interrupt(pid: int, options: int) -> None:
        started.append(pid)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "wait4", interrupt)
    with pytest.raises(KeyboardInterrupt):
        measure(["sleep", "60"], os.environ, tmp_path / "log")
    assert started
    assert not psutil.pid_exists(started[0])

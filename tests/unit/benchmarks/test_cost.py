"""What a measured process costs: its whole tree, and nothing but it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import psutil
import pytest

from benchmarks.cost import Cost, FailedRunError, cpu_of_tree, measure, read_noted
from include.settings import PROJECT

SPIN = "import time; end = time.process_time() + {s}\nwhile time.process_time() < end: pass\n"


def spin(seconds: float) -> str:
    return SPIN.format(s=seconds)


def test_a_process_is_charged_for_what_its_children_used(tmp_path: Path) -> None:
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {spin(0.4)!r}], check=True)"
    cost = measure([sys.executable, "-c", child], os.environ, tmp_path / "log").whole
    assert 0.4 <= cost.cpu_s < 2
    assert cost.wall_s >= 0.4
    assert cost.peak_mb > 1


def test_sleeping_costs_time_and_no_cpu(tmp_path: Path) -> None:
    cost = measure(["sleep", "0.5"], os.environ, tmp_path / "log").whole
    assert cost.wall_s >= 0.5
    assert cost.cpu_s < 0.2


def test_the_awaited_file_is_timed_when_it_appears(tmp_path: Path) -> None:
    awaited = tmp_path / "commit"
    work = f"{spin(0.3)}\nopen({str(awaited)!r}, 'w').close()\n{spin(0.6)}"
    measured = measure([sys.executable, "-c", work], os.environ, tmp_path / "log", awaited)
    assert measured.until is not None
    assert 0.3 <= measured.until.cpu_s < measured.whole.cpu_s - 0.2
    assert measured.until.wall_s < measured.whole.wall_s


def test_a_file_that_never_comes_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FailedRunError, match="did not appear"):
        measure(["true"], os.environ, tmp_path / "log", tmp_path / "commit")


def test_a_failed_run_is_an_error_that_shows_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(FailedRunError, match=r"exit code 3 .*\n.*no such table"):
        measure(["sh", "-c", "echo no such table >&2; exit 3"], os.environ, tmp_path / "log")


def test_the_process_gets_the_environment_that_was_given(tmp_path: Path) -> None:
    measure(["/bin/sh", "-c", "echo $GIVEN-$HOME"], {"GIVEN": "this"}, tmp_path / "log")
    assert (tmp_path / "log").read_text() == "this-\n"


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


def test_a_running_tree_is_accounted_for() -> None:
    before, busy_until = cpu_of_tree(os.getpid()), time.process_time() + 0.2
    while time.process_time() < busy_until:
        pass
    assert cpu_of_tree(os.getpid()) - before >= 0.15


def test_costs_add_up() -> None:
    assert Cost(1, 2, 300) + Cost(3, 4, 200) == Cost(4, 6, 300)


def test_parts_of_a_process_are_noted_one_by_one(tmp_path: Path) -> None:
    costs = tmp_path / "costs"
    parts = "".join(
        f"with noted(Path({str(costs)!r}), {name!r}):\n    end = time.process_time() + {s}\n"
        "    while time.process_time() < end: pass\n"
        for name, s in (("short", 0.1), ("long", 0.5))
    )
    program = f"import time\nfrom pathlib import Path\nfrom benchmarks.cost import noted\n{parts}"
    # Below a parent of its own, as a driver's Python is below its JVM.
    shell = ["/bin/sh", "-c", f'"{sys.executable}" -c "$PROGRAM"; exit $?']
    measure(shell, {**os.environ, "PROGRAM": program, "PYTHONPATH": str(PROJECT)}, tmp_path / "log")
    found = read_noted(costs)
    assert list(found) == ["short", "long"]
    assert 0.05 <= found["short"].cpu_s < 0.4
    assert 0.4 <= found["long"].cpu_s < 1

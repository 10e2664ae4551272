"""A process ends with all that it started, gently where it can."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import psutil

from include.processes import end_tree

CHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', sys.argv[1]]); time.sleep(300)"
GENTLE = """
import pathlib, signal, sys, time
def bye(*_):
    pathlib.Path({note!r}).write_text('cleaned up')
    sys.exit(0)
signal.signal(signal.SIGTERM, bye)
pathlib.Path({ready!r}).touch()
time.sleep(300)
"""
STUBBORN = """
import pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path({ready!r}).touch()
time.sleep(300)
"""


def started(code: str, ready: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    parent = subprocess.Popen([sys.executable, "-c", CHILD, code])
    deadline = time.monotonic() + 30
    while not ready.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    tree = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    assert len(tree) == 2
    return parent, tree


def still_run(tree: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in tree if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_a_grandchild_gets_the_time_to_clean_up_and_then_nothing_is_left_to_end(tmp_path: Path) -> None:
    note, ready = tmp_path / "note", tmp_path / "ready"
    parent, tree = started(GENTLE.format(note=str(note), ready=str(ready)), ready)
    assert end_tree(parent, grace_s=10) == 2
    assert note.read_text() == "cleaned up"
    assert not still_run(tree)
    assert parent.wait(timeout=5) == -15
    assert end_tree(parent, grace_s=1) == 0


def test_a_grandchild_that_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    parent, tree = started(STUBBORN.format(ready=str(ready)), ready)
    began = time.monotonic()
    end_tree(parent, grace_s=0.2)
    assert time.monotonic() - began < 5
    parent.wait(timeout=5)
    assert not still_run(tree)

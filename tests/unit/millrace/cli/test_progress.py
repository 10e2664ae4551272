"""The progress bar: on a terminal, for work that takes longer than a moment, and nowhere else."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

import pytest

from embedded.clone import CLONE

WORK = """
import sys, time
from millrace.cli import progress
assert progress._SHOWN_AFTER_S == 2
progress._SHOWN_AFTER_S = 0.2
for number in progress.in_progress([1, 2, 3, 4], "counting [red] tables"):
    time.sleep(float(sys.argv[1]))
print("done", number)
"""


@pytest.mark.parametrize(
    ("seconds", "is_terminal", "is_shown"), [(0.3, True, True), (0, True, False), (0.2, False, False)]
)
def test_a_bar_appears_on_a_terminal_and_never_on_stdout(seconds: float, is_terminal: bool, is_shown: bool) -> None:
    ours, theirs = pty.openpty()
    ended = subprocess.run(
        [sys.executable, "-c", WORK, str(seconds)],
        env={**os.environ, "TERM": "xterm", "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        stderr=theirs if is_terminal else subprocess.PIPE,
        cwd=CLONE,
        check=True,
    )
    os.write(theirs, b"end")
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    os.close(theirs)
    assert ended.stdout == b"done 4\n"
    assert ("counting [red] tables" in shown and "/4" in shown) == is_shown

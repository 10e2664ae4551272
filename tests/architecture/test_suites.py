"""The runner of the suites fails one that costs too much, also in processes without a parent, or leaves a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from embedded.clone import CLONE

BURN = "import time\nwhile time.process_time() < {}: pass"
"""CPU-seconds, the same on each machine."""
RUNNER = f"""
import sys, typer
from tests import suites
suites.REFERENCE = [sys.executable, "-c", {BURN.format(0.5)!r}]
suites.PATIENCE_S = 12
suites.SUITES = {{name: suites.Suite([f"{{name}}.py"], 2, name == "dear") for name in sys.argv[1:]}}
typer.run(suites.main)
"""
TESTS = {
    "cheap": "pass",
    "dear": f"""subprocess.Popen(["sh", "-c", '"$0" -c "$1" &', {sys.executable!r}, {BURN.format(1.5)!r}])""",
    "forgetful": """subprocess.Popen(["sleep", "600"])""",
}


def test_what_a_suite_costs_and_leaves_counts_against_it_alone(tmp_path: Path) -> None:
    for name, line in TESTS.items():
        (tmp_path / f"{name}.py").write_text(f"import subprocess\n\ndef test_it():\n    {line}\n")
    # Without the plugins a start of pytest costs little beside the reference, also on a slow disk.
    known = {**os.environ, "PYTHONPATH": str(CLONE), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-c", RUNNER, *TESTS]
    ended = subprocess.run(command, env=known, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    dear, forgetful = [line for line in ended.stdout.splitlines() if line.startswith("FAILED")]
    assert dear.startswith("FAILED dear: it cost")
    assert dear.endswith("and its budget in tests/suites.py is 2")
    assert "FAILED forgetful: the tests have left the process" in forgetful
    assert "sleep" in forgetful

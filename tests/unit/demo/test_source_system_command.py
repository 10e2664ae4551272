from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_command_refuses_days_without_data_and_says_which_ones_there_are(tmp_path: Path) -> None:
    days = ["--start", "2015-01-01", "--end", "2015-01-02"]
    command = [sys.executable, "-m", "demo.source_system", "--landing", str(tmp_path), *days]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    assert done.returncode == 2
    assert "2012-12-31" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []

"""`lakehouse new` and the commands that it names, with nothing in the environment that says where anything is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"


@pytest.mark.timeout(900)
def test_a_new_project_is_checked_planned_loaded_and_read(server: SparkServer, tmp_path: Path) -> None:
    environment = {**clean_environment(), **server.client_env()}

    def run(folder: Path, *words: str) -> str:
        ended = subprocess.run(
            [LAKEHOUSE, *words], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    _, *commands = run(tmp_path, "new", "shop").strip().split("\n")
    named = [line.split()[1:] for line in commands if line.split()[0] == "lakehouse"]
    assert [words[0] for words in named] == ["jars", "check", "plan", "run"]
    for words in named[1:]:
        run(tmp_path / "shop" / "tables", *words)
    days = run(tmp_path / "shop", "query", "--json", "SELECT day, orders, revenue FROM gold.revenue_daily ORDER BY day")
    assert [(row["day"], row["orders"], row["revenue"]) for row in json.loads(days)] == [
        *(("2025-07-01", 1, 25.00), ("2025-07-02", 1, 8.75), ("2025-07-03", 1, 60.00)),
    ]
    assert "nobody is paid for an order" in run(tmp_path / "shop", "quarantine", "list")
    assert {file.name for file in (tmp_path / "shop" / "data").iterdir()} == {"landing", "lakehouse"}

"""Drivers whose Spark is their own, as under spark-submit: what they lose on the way, they find out and make good."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from embedded.airflow.standalone import clean_environment
from embedded.clone import CLONE

pytestmark = pytest.mark.slow

PATIENCE_S = 900


def test_batches_that_lose_their_number_or_their_rows_on_the_way_end_right(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.spark.classic_driver", str(tmp_path)]
    driver = subprocess.run(
        command, cwd=CLONE, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert driver.stdout, driver.stderr[-3000:]
    ended: dict[str, Any] = json.loads(driver.stdout)

    outcome, message, attempts = ended["ended"]["fenced"]
    assert (outcome, attempts) == ("no_op", 1), f"the number was taken, and Spark never ran the write: {message}"
    assert ended["ended"]["rival"][0] == "committed"
    outcome, message, attempts = ended["ended"]["without frozen rows"]
    assert (outcome, attempts) == ("committed", 2), f"planned again in the same run: {message}"
    assert ended["rows"]["silver.orders"] == [["o1", 6], ["o2", 7], ["o3", 1]]
    assert ended["ended"]["gold.revenue_daily"][0] == "committed"
    (row,) = ended["rows"]["gold.revenue_daily"]
    assert (row[0], dict(row[1])) == (3, {"o1": 6, "o2": 7, "o3": 1}), "a measure may be a map on every run"

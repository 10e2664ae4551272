"""`lakehouse run` beside Airflow: the same jobs, and so the same tables."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from embedded.stack import Stack
from include.settings import Settings
from tests.e2e.days import FIRST, PATIENCE_S
from tests.e2e.rows import Rows, rows_of_domain

pytestmark = pytest.mark.slow

LAKEHOUSE = Path(sys.executable).parent / "lakehouse"


@pytest.mark.timeout(900)
def test_lakehouse_run_ends_in_the_same_tables_as_airflow(
    good_rows: dict[str, Rows], stack: Stack, lakehouse: Settings, tmp_path: Path
) -> None:
    assert {table: rows.total() for table, rows in good_rows.items()} == {
        "bronze.judged_readings": 2,
        "silver.judged_readings": 2,
        "gold.judged_totals": 2,
    }
    environment = {**stack.environment(), **stack.spark.client_env(), "LAKEHOUSE_ROOT": str(tmp_path)}
    command = [LAKEHOUSE, "run", "--domain", "judged", "--interval", str(FIRST)]

    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False)

    assert run.returncode == 0, run.stdout + run.stderr
    assert rows_of_domain("judged", lakehouse.tables, tmp_path) == good_rows

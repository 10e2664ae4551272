"""Parse DAG files as Airflow does, in a new process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from include.settings import PROJECT
from tests.support.airflow.airflow_home import airflow_environment

SCRIPT = PROJECT / "tests" / "support" / "airflow" / "dag_serial.py"


def parse_dags(home: Path, dags: Path = PROJECT / "dags", **environment: str) -> dict[str, Any]:
    """Return the output of `tests/support/airflow/dag_serial.py` for the folder `dags`."""
    variables = {**os.environ, **airflow_environment(home, dags), "PYTHONPATH": str(PROJECT), **environment}
    process = subprocess.run(
        [sys.executable, str(SCRIPT), str(dags)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-4000:]
    output: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return output

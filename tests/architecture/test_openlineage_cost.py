"""A task that sends no events to OpenLineage does not pay for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from include.settings import PROJECT

TASK_PROCESS = """
import sys
from airflow.sdk.listener import get_listener_manager
get_listener_manager()
import lakehouse_airflow.factory
assert "airflow.providers.openlineage.plugins.openlineage" in sys.modules, "the provider's plugin is loaded"
print("openlineage.client" in sys.modules)
import lakehouse_airflow.lineage.task_lineage
print("openlineage.client" in sys.modules)
"""
"""What a task's process imports before its operator runs, and what it imports to send events."""


def test_only_a_task_that_sends_events_loads_the_client(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "plugins", "AIRFLOW_HOME": str(tmp_path), "OPENLINEAGE_URL": ""}
    command = [sys.executable, "-c", TASK_PROCESS]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.splitlines()[-2:] == ["False", "True"]

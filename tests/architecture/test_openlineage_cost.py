"""A task that sends no events to OpenLineage does not pay for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from include.settings import PROJECT

TASK_PROCESS = """
import sys
from airflow.sdk.listener import get_listener_manager
get_listener_manager()
import lakehouse_airflow.factory
assert "airflow.providers.openlineage.plugins.openlineage" in sys.modules, "the provider's plugin is loaded"
print("openlineage.client" in sys.modules)
"""
"""What a task's process imports before its operator runs."""


@pytest.mark.parametrize(("collector", "loads_client"), [("", "False"), ("http://127.0.0.1:9", "True")])
def test_only_a_task_with_a_collector_loads_the_client(collector: str, loads_client: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": "plugins", "AIRFLOW_HOME": str(tmp_path), "OPENLINEAGE_URL": collector}
    command = [sys.executable, "-c", TASK_PROCESS]
    done = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stdout.splitlines()[-1] == loads_client

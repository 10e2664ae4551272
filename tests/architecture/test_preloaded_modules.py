"""What a task's process has in memory when it begins, each in a clean process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from embedded.airflow.standalone import FORKED_TASKS, LOCAL_SETTINGS
from embedded.clone import CLONE
from tests.support.airflow.airflow_home import airflow_environment

PRELOADED = FORKED_TASKS["MP_FORKSERVER_PRELOAD"].split(",")
SPARK = {"pyspark", "delta", "grpc", "pandas", "py4j", "great_expectations"}

IMPORT = """
import importlib, json, os, runpy, sys, tempfile
import airflow
has_factory = 'lakehouse_airflow.factory' in sys.modules
packages = []
for name in {names}:
    importlib.import_module(name)
    packages.append(sorted({{module.partition('.')[0] for module in sys.modules}}))
"""
FORK = """
child = os.fork()
if not child:
    import deltalake, pyarrow
    from millrace_spark.runtime.session import _channel
    os.environ['SPARK_REMOTE'] = 'sc://localhost:1'
    os.chdir(tempfile.mkdtemp())
    deltalake.write_deltalake('t', pyarrow.table({'n': [1, 2]}))
    _channel(os.environ['SPARK_REMOTE']).toChannel().close()
    os._exit(deltalake.DeltaTable('t').to_pyarrow_table().num_rows)
rows = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""
WORK = """
before = set(sys.modules)
runpy.run_path('demo/dags/flights.py')
for job in ('bronze_ingest', 'silver_merge', 'gold_aggregate', 'quality_gate'):
    runpy.run_path(f'spark_jobs/millrace_spark/jobs/{job}.py')
import deltalake, pyspark.sql.connect.client.core, pyspark.sql.connect.client.reattach, pyspark.sql.connect.dataframe
imported = sorted(set(sys.modules) - before)
"""
PLUGIN = """
import lakehouse_airflow.ui.plugin
imported = sorted(sys.modules)
"""
LINEAGE = """
from airflow.sdk.listener import get_listener_manager
get_listener_manager()
assert 'airflow.providers.openlineage.plugins.openlineage' in sys.modules, "the provider's plugin is loaded"
has_client = ['openlineage.client' in sys.modules]
import lakehouse_airflow.lineage.task_lineage
has_client.append('openlineage.client' in sys.modules)
"""
SEEN = ("packages", "has_factory", "rows", "imported", "has_client")
PRINT = f"print(json.dumps({{name: globals().get(name) for name in {SEEN}}}))"


def seen(home: Path, names: list[str], program: str, code: str) -> dict[str, Any]:
    """Import the modules in a new process as Airflow's forkserver does, run `code` there, and return what it saw."""
    (home / "config").mkdir()
    (home / "config" / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
    environment = {**os.environ, **airflow_environment(home, CLONE / "dags"), "PYTHONPATH": str(CLONE)}
    command = [sys.executable, "-c", IMPORT.format(names=names) + code + PRINT, program]
    ended = subprocess.run(
        command, cwd=CLONE, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    found: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return found


def test_a_task_imports_nothing_more_and_its_fork_can_use_delta_and_a_server(tmp_path: Path) -> None:
    task = seen(tmp_path, ["lakehouse_airflow.preloaded", *PRELOADED], "scheduler", FORK + WORK + LINEAGE)
    first, *_, last = map(set, task["packages"])
    assert {"deltalake", "pyarrow"} <= first
    assert not SPARK & first, "a gate and a plan need nothing of Spark"
    assert "great_expectations" not in last, "few jobs need it"
    assert task["imported"] == []
    assert task["rows"] == 2
    assert task["has_client"] == [False, True], "only a task that sends events loads OpenLineage's client"
    assert not task["has_factory"], "the scheduler does not parse DAG files"


def test_the_dag_processor_alone_has_what_a_dag_file_imports_before_it_forks(tmp_path: Path) -> None:
    processor = seen(tmp_path, [], "dag-processor", PLUGIN)
    assert processor["has_factory"]
    imported = set(processor["imported"])
    assert "lakehouse_airflow.ui.plugin" in imported, "the watch on imports sees them"
    heavy = {"fastapi", "deltalake", "pyarrow", *SPARK}
    assert not heavy & imported, "the plugin, which each of Airflow's processes loads, needs none of them"

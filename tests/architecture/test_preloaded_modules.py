"""What a task's process has in memory when it begins, each in a clean process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from embedded.airflow.standalone import FORKED_TASKS, LOCAL_SETTINGS
from include.settings import PROJECT
from tests.support.airflow.airflow_home import airflow_environment

PRELOADED = FORKED_TASKS["MP_FORKSERVER_PRELOAD"].split(",")
SPARK = {"pyspark", "delta", "grpc", "pandas", "py4j", "great_expectations"}

IMPORT = "import importlib, json, sys\nfor name in {names}:\n    importlib.import_module(name)\n"
PACKAGES = "print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
WORK = """
import runpy
before = set(sys.modules)
runpy.run_path('dags/flights.py')
for job in ('bronze_ingest', 'silver_merge', 'gold_aggregate', 'quality_gate'):
    runpy.run_path(f'spark_jobs/jobs/{job}.py')
import deltalake, pyspark.sql.connect.client.core, pyspark.sql.connect.client.reattach, pyspark.sql.connect.dataframe
print(json.dumps(sorted(set(sys.modules) - before)))
"""
FORK = """
import os, tempfile
child = os.fork()
if not child:
    import deltalake, pyarrow
    from spark_jobs.runtime.session import _channel
    os.environ['SPARK_REMOTE'] = 'sc://localhost:1'
    os.chdir(tempfile.mkdtemp())
    deltalake.write_deltalake('t', pyarrow.table({'n': [1, 2]}))
    _channel(os.environ['SPARK_REMOTE']).toChannel().close()
    print(json.dumps(deltalake.DeltaTable('t').to_pyarrow_table().num_rows), flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def output_of(code: str, home: Path, names: list[str] = PRELOADED, *arguments: str) -> object:
    """Import the modules in a new process as Airflow's forkserver does, run `code` there, and return what it prints."""
    environment = {**os.environ, **airflow_environment(home, PROJECT / "dags"), "PYTHONPATH": str(PROJECT)}
    command = [sys.executable, "-c", IMPORT.format(names=["airflow", *names]) + code, *arguments]
    ended = subprocess.run(
        command, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    return json.loads(ended.stdout.splitlines()[-1])


def test_neither_the_dag_file_nor_the_jobs_import_anything_more(tmp_path: Path) -> None:
    assert output_of(WORK, tmp_path) == []
    assert "spark_jobs.layers.writing" in output_of(WORK, tmp_path, names=[])


def test_the_dag_processor_alone_has_what_a_dag_file_imports_before_it_forks(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "airflow_local_settings.py").write_text(LOCAL_SETTINGS)
    seen = "print(json.dumps('lakehouse_airflow.factory' in sys.modules))"
    for command, is_there in (("dag-processor", True), ("scheduler", False)):
        assert output_of(seen, tmp_path, [], command) is is_there


def test_a_gate_and_a_plan_need_nothing_of_spark(tmp_path: Path) -> None:
    packages = set(output_of(PACKAGES, tmp_path, names=["lakehouse_airflow.preloaded"]))
    assert {"deltalake", "pyarrow"} <= packages
    assert not packages & SPARK


def test_a_fork_of_it_can_read_and_write_delta_and_reach_a_server(tmp_path: Path) -> None:
    assert output_of(FORK, tmp_path) == 2


def test_great_expectations_which_few_jobs_need_is_left_out(tmp_path: Path) -> None:
    assert "great_expectations" not in output_of(PACKAGES, tmp_path)

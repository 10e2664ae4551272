"""Run DAGs with `dag.test()`, one for each case, in a new database, and print the results as JSON; run as a script.

Argument: the cases as JSON: `{name: {"path": ..., "at": ..., "conf": ..., "environment": ..., "project": ...}}`.
`path` is the DAG file. `at` is the time of the trigger, from which Airflow makes the run id: two cases with the same
time are one run that runs again, as after Clear. The job files are in
`jobs/` below the project.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import datetime
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from airflow.models.asset import AssetEvent, AssetModel
from airflow.sdk import DAG
from airflow.utils.db import initdb
from airflow.utils.session import create_session

from lakehouse_airflow.operators import spark_job

MARK = "RESULTS OF ALL CASES: "


def main(cases: dict[str, Any]) -> dict[str, Any]:
    """Return the result of each case's run, by the case's name."""
    return {name: one_run(name, **case) for name, case in cases.items()}


def one_run(
    name: str, path: str, at: str, conf: dict[str, Any], environment: dict[str, str], project: str
) -> dict[str, Any]:
    """Return the run's id, tasks (task id -> state, tries), their results, assets in the UI, and asset events."""
    sys.stdout.write(f"\nCASE {name}\n")
    os.environ.update(environment)
    spark_job.job_file = lambda application: str(Path(project) / application)
    moment = datetime.fromisoformat(at)
    run = loaded(path).test(logical_date=moment, run_after=moment, run_conf=conf)
    with create_session() as session:
        tasks = run.get_task_instances(session=session)
        events = session.query(AssetEvent).filter(AssetEvent.source_run_id == run.run_id)
        return {
            "run_id": run.run_id,
            "tasks": {task.task_id: [str(task.state), task.try_number] for task in tasks},
            "results": {task.task_id: task.xcom_pull(task_ids=task.task_id, session=session) for task in tasks},
            "assets": [
                [asset.name, asset.uri, asset.group]
                for asset in session.query(AssetModel).filter(AssetModel.active.has())
            ],
            "events": [[event.asset.name, event.extra] for event in events],
        }


def loaded(path: str) -> DAG:
    """Return the `dag` of a DAG file."""
    spec = spec_from_file_location(Path(path).stem, path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    dag: DAG = module.dag
    dag.deadline = []  # with one, `dag.test()` of Airflow 3.3.2 fails
    return dag


if __name__ == "__main__":
    initdb()
    results = main(json.loads(sys.argv[1]))
    sys.stdout.write(f"\n{MARK}{json.dumps(results, default=str)}\n")

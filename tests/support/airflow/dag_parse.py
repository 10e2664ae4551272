"""Parse DAG files as Airflow does, in a new process, which runs this file as a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from embedded.clone import CLONE
from tests.support.airflow.airflow_home import airflow_environment

HEAVY = ("pyspark", "delta", "great_expectations", "deltalake", "pyarrow", "pandas", "numpy", "psycopg2", "openlineage")
OUTSIDE = ("socket.connect", "socket.getaddrinfo", "sqlite3.connect", "subprocess.Popen")


def parse_dags(home: Path, dags: Path, **environment: str) -> dict[str, Any]:
    """Return serialised DAGs, loaded heavy modules, calls to the outside, and the CPU seconds of the files alone."""
    variables = {**os.environ, **airflow_environment(home, dags), "PYTHONPATH": str(CLONE), **environment}
    command = [sys.executable, __file__, str(dags)]
    process = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert process.returncode == 0, process.stderr[-4000:]
    output: dict[str, Any] = json.loads(process.stdout.splitlines()[-1])
    return output


def main(folder: Path) -> dict[str, Any]:
    """Parse every DAG file of a folder in this process."""
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    calls: list[str] = []
    sys.addaudithook(lambda event, arguments: calls.append(f"{event} {arguments!r:.200}") if event in OUTSIDE else None)
    before = time.process_time()
    bag = DagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="tests")
    spent = time.process_time() - before
    outside = list(calls)
    return {
        "errors": bag.import_errors,
        "dags": {dag_id: DagSerialization.to_dict(dag) for dag_id, dag in sorted(bag.dags.items())},
        "heavy": sorted({name.partition(".")[0] for name in sys.modules} & set(HEAVY)),
        "outside": outside,
        "cpu_s": spent,
    }


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(Path(sys.argv[1]))) + "\n")

"""``python -m tests.own_airflow``: a stock Airflow in an empty folder, Millrace's wheel, and a day through both.

It follows the guide *Add Millrace to your Airflow*, with nothing of this project but the wheel on the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import httpx

from embedded.airflow.api import AirflowApi
from embedded.clone import CLONE
from embedded.home import free_port
from millrace.processes import end_tree

AIRFLOW = "apache-airflow==3.3.2"
DAY = "2025-07-01"
_USER = "admin"
_PATIENCE_S = 600

_BRONZE = """table: bronze.orders
description: orders of the shop
owner: sales
source: {landing: orders, path: "date={interval_start:%Y-%m-%d}", format: json}
columns:
  id: {type: bigint}
  amount: {type: "decimal(10,2)"}
"""
_SILVER = """table: silver.orders
description: the last state of each order
owner: sales
source: bronze.orders
keys: [id]
columns:
  id: {type: bigint, nullable: false}
  amount: {type: "decimal(10,2)"}
expectations:
  - expect_column_values_to_be_between: {column: amount, min_value: 0}
    action: quarantine
    reason: no negative amounts
"""
_READ = """import sys
from millrace import certified
rows = certified("silver.orders").arrow().select(["id", "amount"]).to_pylist()
assert not {"airflow", "pyspark"} & set(sys.modules), "readers load neither"
print(sorted((row["id"], str(row["amount"])) for row in rows))
"""


def main() -> None:
    """Install, load a day by a run of the DAG, and read the tables."""
    (wheel,) = (CLONE / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="own-airflow-") as name:
        folder = Path(name)
        python = install(wheel, folder)
        lay_out(folder)
        environment = environment_of(folder, python)
        run([str(python.parent / "lakehouse"), "jars", "--into", str(folder / "jars")], folder, environment)
        run([str(python.parent / "lakehouse"), "check"], folder, environment)
        load(folder, python, environment)
        rows = run([str(python), "-c", _READ], folder, environment)
        assert rows.strip() == "[(1, '5.00'), (2, '7.50')]", rows
        sys.stdout.write("A day went through a stock Airflow with the wheel of Millrace: every row is right.\n")


def install(wheel: Path, folder: Path) -> Path:
    """Return the Python of a new environment with a stock Airflow, to which the wheel was added."""
    uv, python = str(CLONE / ".venv" / "bin" / "uv"), folder / "venv" / "bin" / "python"
    run([uv, "venv", "--quiet", "--python", sys.executable, str(folder / "venv")], folder, dict(os.environ))
    for package in (AIRFLOW, f"millrace[airflow] @ file://{wheel}"):
        run([uv, "pip", "install", "--quiet", "--python", str(python), package], folder, dict(os.environ))
    return python


def lay_out(folder: Path) -> None:
    """Write the specs, the DAG file of the guide, and the files of a day, one row of which is refused."""
    for layer, spec in (("bronze", _BRONZE), ("silver", _SILVER)):
        (folder / "tables" / layer / "shop").mkdir(parents=True)
        (folder / "tables" / layer / "shop" / "orders.yaml").write_text(spec)
    (folder / "dags").mkdir()
    shutil.copy(CLONE / "docs" / "examples" / "own_airflow" / "shop.py", folder / "dags")
    landing = folder / "landing" / "orders" / f"date={DAY}"
    landing.mkdir(parents=True)
    amounts = ((1, 5), (2, 7.5), (3, -1))
    (landing / "a.json").write_text("".join(f"{json.dumps({'id': at, 'amount': amount})}\n" for at, amount in amounts))


def environment_of(folder: Path, python: Path) -> dict[str, str]:
    """Return the environment of Airflow and the command line: that of this process without this project."""
    foreign = ("AIRFLOW", "SPARK_", "PYSPARK_", "PYTHON", "LAKEHOUSE_", "VIRTUAL_ENV")
    own = {key: value for key, value in os.environ.items() if not key.startswith(foreign)}
    places = {"ROOT": "lakehouse", "LANDING": "landing", "TABLES": "tables", "JARS": "jars"}
    port = free_port()
    settings = {
        **{f"CORE__{key}": value for key, value in (("DAGS_FOLDER", str(folder / "dags")), ("LOAD_EXAMPLES", "False"))},
        "CORE__SIMPLE_AUTH_MANAGER_USERS": f"{_USER}:admin",
        "CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        **{"API__HOST": "127.0.0.1", "API__PORT": str(port), "API__BASE_URL": f"http://127.0.0.1:{port}"},
    }
    return {
        **own,
        **{f"LAKEHOUSE_{key}": str(folder / name) for key, name in places.items()},
        **{f"AIRFLOW__{key}": value for key, value in settings.items()},
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW_CONN_SPARK_DEFAULT": json.dumps({"conn_type": "spark", "host": "local[2]"}),
        "PATH": f"{python.parent}{os.pathsep}{own.get('PATH', os.defpath)}",
    }


def load(folder: Path, python: Path, environment: dict[str, str]) -> None:
    """Start Airflow, run the DAG for the day, look at a page, and stop Airflow."""
    url, began = environment["AIRFLOW__API__BASE_URL"], datetime.now(UTC)
    with (folder / "airflow.log").open("wb") as output:
        command = [str(python.parent / "airflow"), "standalone"]
        airflow = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=output, start_new_session=True
        )
    try:
        passwords = folder / "airflow" / "simple_auth_manager_passwords.json.generated"
        with AirflowApi(url, _USER, "") as nobody:
            nobody.wait_until_healthy(began, alive=lambda: airflow.poll() is None)
        password = json.loads(passwords.read_text())[_USER]
        with AirflowApi(url, _USER, password) as api:
            api.wait_for_dag("shop")
            api.set_paused("shop", False)
            ended = api.wait_for_run(api.trigger("shop", {"day": DAY}), _PATIENCE_S)
            assert ended.state == "success", (folder / "airflow.log").read_text()[-4000:]
        account = {"username": _USER, "password": password}
        token = httpx.post(f"{url}/auth/token", json=account).raise_for_status().json()["access_token"]
        for page, text in (("tables", "silver.orders"), ("docs/glossary.md", "Glossary")):
            headers = {"Authorization": f"Bearer {token}"}
            answer = httpx.get(f"{url}/lakehouse/{page}", headers=headers, timeout=60).raise_for_status()
            assert text in answer.text, f"/lakehouse/{page}"
    finally:
        end_tree(airflow, 30)
        airflow.wait()


def run(command: list[str], folder: Path, environment: dict[str, str]) -> str:
    """Run a command in the folder, and return what it prints."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-4000:]}")
    return done.stdout


if __name__ == "__main__":
    main()

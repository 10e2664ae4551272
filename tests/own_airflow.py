"""``python -m tests.own_airflow [3.12]``: a stock Airflow in an empty folder, Millrace's wheel, and a day through both.

It runs on the given Python, else on that of this clone. It follows the guide *Add Millrace to your Airflow*, with
nothing of this clone but the wheel on the path.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import httpx
import yaml

from embedded.airflow.api import AirflowApi
from embedded.clone import CLONE
from embedded.home import free_port
from millrace.processes import end_tree

AIRFLOW = "apache-airflow==3.3.2"
DAY = "2025-07-01"
_USER = "admin"
_PATIENCE_S = 600

_READ = """import sys
from millrace import certified
rows = certified("silver.orders").arrow().select(["order_id", "amount"]).to_pylist()
assert not {"airflow", "pyspark"} & set(sys.modules), "readers load neither"
print(sorted((row["order_id"], str(row["amount"])) for row in rows))
"""


def main() -> None:
    """Install, load a day by a run of the DAG, and read the tables."""
    (wheel,) = (CLONE / "dist").glob("*.whl")
    with tempfile.TemporaryDirectory(prefix="own-airflow-") as name:
        folder = Path(name)
        python = install(wheel, folder)
        lakehouse, shop = str(python.parent / "lakehouse"), folder / "shop"
        environment = foreign_environment(python)
        run([lakehouse, "new", "shop"], folder, environment)
        run([lakehouse, "jars"], shop, environment)
        run([lakehouse, "check"], shop, environment)
        load(folder, python, {**environment, **airflow_settings(shop, folder)})
        rows = run([str(python), "-c", _READ], shop / "tables", environment)
        assert rows.strip() == "[(1, '25.00'), (2, '12.50')]", rows
        sys.stdout.write("A day went through a stock Airflow with the wheel of Millrace: every row is right.\n")


def install(wheel: Path, folder: Path) -> Path:
    """Return the Python of a new environment with a stock Airflow, to which the wheel was added."""
    uv, python = str(CLONE / ".venv" / "bin" / "uv"), folder / "venv" / "bin" / "python"
    version = sys.argv[1] if len(sys.argv) > 1 else sys.executable
    run([uv, "venv", "--quiet", "--python", version, str(folder / "venv")], folder, dict(os.environ))
    for package in (AIRFLOW, f"millrace[airflow] @ file://{wheel}"):
        run([uv, "pip", "install", "--quiet", "--python", str(python), package], folder, dict(os.environ))
    return python


def foreign_environment(python: Path) -> dict[str, str]:
    """Return the environment of this process without what is this clone's."""
    own = ("AIRFLOW", "SPARK_", "PYSPARK_", "PYTHON", "LAKEHOUSE_", "VIRTUAL_ENV")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(own)}
    return {**kept, "PATH": f"{python.parent}{os.pathsep}{kept.get('PATH', os.defpath)}"}


def airflow_settings(project: Path, folder: Path) -> dict[str, str]:
    """Return the settings of Airflow: those of the project's compose file, with the places of this machine."""
    port = free_port()
    compose = yaml.safe_load((project / "docker-compose.yaml").read_text())
    return {
        **compose["services"]["airflow"]["environment"],
        "LAKEHOUSE_PROJECT": str(project),
        "LAKEHOUSE_JARS": str(project / ".jars"),
        "AIRFLOW_HOME": str(folder / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(project / "dags"),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        **{f"AIRFLOW__API__{key}": value for key, value in (("HOST", "127.0.0.1"), ("PORT", str(port)))},
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
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

"""Make the secrets of a new installation: `python -m containers.first_start`, the first service that starts.

Each secret is a file in a volume that only those services mount which need it. A file that exists is kept, so that a
restart changes no password.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from cryptography.fernet import Fernet

from containers.spark_connect import REMOTE
from embedded.home import keep_secret, new_secret

FOLDER = Path("/run/millrace")
FOLDERS = ("airflow", "cluster", "connect", "database", "lakehouse", "store", "users")
"""Each for another group of services."""

USERS = "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS"
TASKS = "tasks"
"""The user as whom tasks use Airflow's API."""
COMMAND_LINE = "lakehouse"
"""The user as whom the command line creates asset events in Airflow."""

AIRFLOW = "http://airflow-api-server:8080"


def make_secrets(folder: Path, users: Iterable[str]) -> None:
    """Make the secrets that do not exist yet.

    Args:
        folder: has the folders of `FOLDERS`, which are volumes.
        users: the names of the web users, each of whom gets a password; `TASKS` and `COMMAND_LINE` are among them.
    """
    database = keep_secret(folder / "database" / "password", new_secret())
    # PostgreSQL runs as a user of its own.
    (folder / "database" / "password").chmod(0o444)
    airflow = folder / "airflow"
    keep_secret(airflow / "database_url", f"postgresql+psycopg2://airflow:{database}@postgres/airflow")
    keep_secret(airflow / "fernet_key", Fernet.generate_key().decode())
    keep_secret(airflow / "jwt_secret", 3 * new_secret())
    keep_secret(airflow / "web_secret", new_secret())
    # Spark's master and workers accept each other, the Connect server and its executors by this secret.
    cluster = f"spark.authenticate true\nspark.authenticate.secret {new_secret()}\nspark.ui.killEnabled false\n"
    keep_secret(folder / "cluster" / "spark-defaults.conf", cluster)
    token = keep_secret(folder / "connect" / "token", new_secret())
    passwords = _add_passwords(folder / "users" / "passwords.json", users)
    # With it Prometheus reads the metrics from the web server.
    keep_secret(folder / "users" / "metrics_token", new_secret())
    connections = {"spark_default": _to_spark(token), "airflow_api": _to_airflow(passwords[TASKS])}
    keep_secret(airflow / "connections.json", json.dumps(connections, indent=2))
    access = {"url": AIRFLOW, "login": COMMAND_LINE, "password": passwords[COMMAND_LINE]}
    keep_secret(folder / "lakehouse" / "airflow.json", json.dumps(access))
    store = folder / "store"
    access_key = keep_secret(store / "access_key", f"millrace-{new_secret()[:8]}")
    secret_key = keep_secret(store / "secret_key", new_secret())
    # The file that boto3, delta-rs and Spark read.
    profile = f"[default]\naws_access_key_id = {access_key}\naws_secret_access_key = {secret_key}\n"
    keep_secret(store / "credentials", profile)


def _to_spark(token: str) -> dict[str, str]:
    about = "The warm Spark Connect server of docker-compose.yaml"
    return {"conn_type": "spark", "description": about, "host": REMOTE, "password": token}


def _to_airflow(password: str) -> dict[str, str]:
    about = "Airflow itself: by it a task that waited for an approval runs again"
    return {"conn_type": "generic", "description": about, "host": AIRFLOW, "login": TASKS, "password": password}


def _add_passwords(file: Path, users: Iterable[str]) -> dict[str, str]:
    """Give each user without a password one, in the file that Airflow reads; return all."""
    passwords: dict[str, str] = json.loads(keep_secret(file, "{}"))
    if added := {user: new_secret() for user in users if user not in passwords}:
        unfinished = file.with_suffix(".new")
        unfinished.unlink(missing_ok=True)
        keep_secret(unfinished, json.dumps({**passwords, **added}))
        unfinished.replace(file)
    return {**passwords, **added}


def main() -> None:
    """Make the secrets of this installation."""
    users = [user.partition(":")[0].strip() for user in os.environ[USERS].split(",")]
    make_secrets(FOLDER, users)


if __name__ == "__main__":
    main()

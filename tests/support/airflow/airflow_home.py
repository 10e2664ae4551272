"""A private Airflow for tests: settings that must be in the environment before anything imports `airflow`."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from embedded.clone import CLONE, DEMO, dag_folders

_OWNER = "MILLRACE_TEST_AIRFLOW_OWNER"


def airflow_environment(home: Path, dags: Path) -> dict[str, str]:
    """Return the variables of a private Airflow on SQLite, without examples, other plugins, or connections."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def copy_dags(folder: Path, *without: str) -> Path:
    """Copy all DAG files of the demo into a new folder, but those whose names are in `without`, and return it."""
    for dags in dag_folders(DEMO).values():
        shutil.copytree(dags, folder, ignore=shutil.ignore_patterns("__pycache__", *without), dirs_exist_ok=True)
    return folder


def use_private_airflow() -> None:
    """Give this process a private Airflow home; `conftest.py` files call this before their imports."""
    owner = str(os.getpid())
    if os.environ.get(_OWNER) == owner:
        return
    home = Path(tempfile.mkdtemp(prefix="millrace-airflow-"))
    os.environ.update({**airflow_environment(home, CLONE / "dags"), _OWNER: owner})
    atexit.register(_remove, home, owner)


def _remove(home: Path, owner: str) -> None:
    if str(os.getpid()) == owner:
        shutil.rmtree(home, ignore_errors=True)

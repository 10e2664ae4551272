"""A private Airflow for tests: settings that must be in the environment before anything imports `airflow`."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from filelock import FileLock

from include.settings import PROJECT

_OWNER = "MILLRACE_TEST_AIRFLOW_OWNER"
_TEMPLATE = "MILLRACE_TEST_AIRFLOW_TEMPLATE"
"""The variable with the folder of a migrated database, which pytest's workers inherit and share."""


def airflow_environment(home: Path, dags: Path) -> dict[str, str]:
    """Return the variables of a private Airflow on SQLite, without examples, other plugins, or connections."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(PROJECT / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home}/airflow.db",
        "AIRFLOW__DATABASE__LOAD_DEFAULT_CONNECTIONS": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def use_private_airflow() -> None:
    """Give this process a private Airflow home; `conftest.py` files call this before their imports."""
    owner = str(os.getpid())
    if os.environ.get(_OWNER) == owner:
        return
    _template()
    home = Path(tempfile.mkdtemp(prefix="millrace-airflow-"))
    os.environ.update({**airflow_environment(home, PROJECT / "dags"), _OWNER: owner})
    atexit.register(_remove, home, owner)


def _template() -> Path:
    if _TEMPLATE not in os.environ:
        os.environ[_TEMPLATE] = tempfile.mkdtemp(prefix="millrace-airflow-template-")
        atexit.register(_remove, Path(os.environ[_TEMPLATE]), str(os.getpid()))
    return Path(os.environ[_TEMPLATE])


def _remove(home: Path, owner: str) -> None:
    if str(os.getpid()) == owner:
        shutil.rmtree(home, ignore_errors=True)


def create_airflow_home(home: Path, dags: Path) -> dict[str, str]:
    """Create the database of a private Airflow in `home`, and return its environment.

    It is a copy of one that the first call migrates: `airflow db migrate` takes ten CPU-seconds.
    """
    template = _template()
    with FileLock(template / ".lock"):
        if not (template / "airflow.db").exists():
            environment = {**os.environ, **airflow_environment(template / "first", dags)}
            command = [sys.executable, "-m", "airflow", "db", "migrate"]
            subprocess.run(command, env=environment, check=True, capture_output=True, timeout=600)
            (template / "first" / "airflow.db").rename(template / "airflow.db")
    home.mkdir(parents=True, exist_ok=True)
    shutil.copy(template / "airflow.db", home)
    return {**os.environ, **airflow_environment(home, dags)}

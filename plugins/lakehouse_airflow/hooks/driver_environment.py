"""The environment of a driver: what it needs to find its parts, and none of Airflow's own secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from include.settings import PROJECT
from include.spark_conf import DRIVER_VARIABLES

CONNECT = "sc://"
TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"

_NOT_FOR_DRIVERS = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW")
_ONLY_FOR_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", TOKEN)


def driver_environment(base: Mapping[str, str], master: str, extra: Mapping[str, str]) -> dict[str, str]:
    """The environment for a driver against `master`.

    Args:
        base: the environment of the task.
        master: a Spark master, or the `sc://` address of a Spark Connect server.
        extra: variables of the operator's own; they win.
    """
    passed_on = {name: value for name, value in base.items() if not name.startswith(_NOT_FOR_DRIVERS)}
    kept = {**DRIVER_VARIABLES, **passed_on}
    kept["PYTHONPATH"] = _first(str(PROJECT), kept.get("PYTHONPATH"))
    if master.startswith(CONNECT):
        return {**kept, "SPARK_REMOTE": master, **extra}
    return {**_for_submit(kept, master), **extra}


def _for_submit(kept: Mapping[str, str], master: str) -> dict[str, str]:
    """spark-submit of a pip-installed PySpark looks for `python3` on PATH to find its own home: tell it both."""
    environment = {name: value for name, value in kept.items() if name not in _ONLY_FOR_CONNECT}
    environment.setdefault("SPARK_HOME", pyspark_home())
    environment.setdefault("PYSPARK_PYTHON", sys.executable)
    environment.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    environment["PATH"] = _first(str(Path(sys.executable).parent), environment.get("PATH"))
    if master.startswith("local"):
        environment.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    return environment


def pyspark_home() -> str:
    """The folder of the installed PySpark, found without importing it."""
    spec = find_spec("pyspark")
    return str(next(iter(spec.submodule_search_locations or []), "")) if spec else ""


def _first(folder: str, others: str | None) -> str:
    return os.pathsep.join([folder, others]) if others else folder

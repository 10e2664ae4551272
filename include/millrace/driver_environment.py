"""The environment of a Spark driver: where Python, Spark and this project are, without Airflow's secrets."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from millrace.spark_conf import DRIVER_VARIABLES
from millrace.spark_location import CONNECT, spark_home

TOKEN = "SPARK_CONNECT_AUTHENTICATE_TOKEN"

_OWN_PYTHON = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
_NOT_FOR_DRIVERS = (
    *("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW"),
    *("LAKEHOUSE_AIRFLOW", "LAKEHOUSE_METRICS_TOKEN"),
)
_ONLY_FOR_CONNECT = ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", TOKEN)


def driver_environment(base: Mapping[str, str], master: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return the environment for a driver against `master`.

    Args:
        base: the environment of the process that starts the driver.
        master: a Spark master, or the `sc://` address of a Spark Connect server.
        extra: further variables; they replace those of `base`.

    Raises:
        SparkUnavailableError: `base` names no Spark, and this Python has none.
    """
    environment = {**DRIVER_VARIABLES, **base}
    environment = {name: value for name, value in environment.items() if not name.startswith(_NOT_FOR_DRIVERS)}
    if master.startswith(CONNECT):
        return {**environment, "SPARK_REMOTE": master, **extra}
    # spark-submit of a pip-installed PySpark looks for `python3` on PATH to find its own home: name both.
    environment = {name: value for name, value in environment.items() if name not in _ONLY_FOR_CONNECT}
    environment["PATH"] = _prepend(str(Path(sys.executable).parent), environment.get("PATH"))
    local = {"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}
    own = {} if "SPARK_HOME" in {**environment, **extra} else {"SPARK_HOME": str(spark_home())}
    return {**local, **own, **_OWN_PYTHON, **environment, **extra}


def own_spark() -> dict[str, str]:
    """Return the variables that make spark-submit use this Python and its PySpark, whatever else is installed.

    Raises:
        SparkUnavailableError: this Python has no PySpark.
    """
    return {"SPARK_HOME": str(spark_home()), **_OWN_PYTHON}


@contextmanager
def with_scratch_folder(environment: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield the environment with variables that point Python, Java and Spark to a scratch folder.

    The folder is deleted when the driver ends, for any reason.

    A killed JVM leaves its native libraries, and every JVM the folders of Spark's sessions. `SPARK_LOCAL_DIRS`, if set,
    still decides about Spark's scratch files.
    """
    with TemporaryDirectory(prefix="millrace-", ignore_cleanup_errors=True) as folder:
        options = [environment.get("JDK_JAVA_OPTIONS", ""), f'"-Djava.io.tmpdir={folder}"']
        own = {"TMPDIR": folder, "JDK_JAVA_OPTIONS": " ".join(filter(None, options))}
        yield {"SPARK_LOCAL_DIRS": folder, **environment, **own}


def _prepend(folder: str, others: str | None) -> str:
    return os.pathsep.join([folder, others]) if others else folder

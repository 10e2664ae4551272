"""One warm Spark server for all tests of a run: a JVM takes a minute of CPU until it is warm."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from filelock import FileLock

from embedded.airflow.standalone import clean_environment
from embedded.home import Home, free_port
from embedded.servers.kafka_broker import NAME as KAFKA
from embedded.servers.s3 import CREDENTIALS
from embedded.spark.server import NAME as SPARK
from embedded.spark.server import SparkServer
from embedded.stack_processes import stop
from millrace.settings import Settings

HOME = "MILLRACE_TEST_SPARK_HOME"

FEW_ROWS = """
spark.sql.codegen.factoryMode NO_CODEGEN
spark.databricks.delta.delta.log.cacheSize 50
spark.sql.ui.explainMode simple
spark.sql.ui.retainedExecutions 10
spark.ui.retainedJobs 20
spark.ui.retainedStages 20
spark.ui.retainedTasks 200
spark.driver.defaultJavaOptions -Xms4g -XX:MetaspaceSize=512m
"""
"""Settings of a server that sees a few rows of many tables, each of them for a minute.

It interprets expressions: to generate code costs a fifth of the CPU-seconds of a job on a few rows, most of it in
Delta's own queries. Tests of what Spark computes (`SESSION` in `tests/spark`), drivers with a Spark of their own, whole
stacks and the demo run on generated code. It forgets the logs of tables that are gone, and past queries, which Spark
otherwise describes in full for its pages, also when they are off. It has its whole heap from the start: the heap would
otherwise grow by full garbage collections.
"""

GENERATED_CODE = {"spark.sql.codegen.factoryMode": "FALLBACK"}
"""The setting of a session that has Spark's default instead."""


def choose_server_address() -> None:
    """Choose the address of the server, and set it in the environment, which pytest's workers inherit.

    Call it before any import of `millrace_spark.runtime.session`, which reads the address. The first test that needs
    the server starts it.
    """
    if HOME in os.environ:
        return
    home = Home(Path(tempfile.mkdtemp(prefix="millrace-spark-")))
    home.prepare()
    os.environ.update({HOME: str(home.path), **SparkServer(home, Settings().jars, free_port()).client_env()})
    atexit.register(_stop, home)


def shared_server() -> SparkServer:
    """Return the running server: the first process that calls this starts it, the others wait."""
    home = Home(Path(os.environ[HOME]))
    port = urlsplit(os.environ["SPARK_REMOTE"]).port
    assert port is not None
    server = SparkServer(home, Settings().jars, port, memory="4g")
    with FileLock(home.path / "start.lock"):
        if not server.is_alive():
            (home.path / "spark-defaults.conf").write_text(FEW_ROWS)
            server.start({**clean_environment(), **CREDENTIALS, "SPARK_CONF_DIR": str(home.path)})
    return server


def _stop(home: Home) -> None:
    for name in (KAFKA, SPARK):
        stop(home, name, patience_s=15)
    shutil.rmtree(home.path)

"""Run the warm Spark Connect server on the cluster of docker-compose.yaml: `python -m containers.spark_connect`.

It is the server of the local stack (ADR 7) with executors on the workers.
"""

from __future__ import annotations

import os
from pathlib import Path
from shutil import rmtree

from embedded.spark.command import connect_server_command, scratch_folder
from millrace.driver_environment import TOKEN, driver_environment, own_spark
from millrace.new_files import restrict_new_files
from millrace.settings import Settings

MASTER = "spark://spark-master:7077"
HOST, PORT = "spark-connect", 15002
REMOTE = f"sc://{HOST}:{PORT}/;use_ssl=false"
"""Its address for clients; they send their token without TLS, in a network of this machine."""

TOKEN_FILE = Path("/run/millrace/connect/token")
FOLDER = Path("/var/lib/millrace/spark")
CORES = "SPARK_CORES"
"""The environment variable with the number of cores of all workers, by which rows are partitioned."""


def command(jars: Path, cores: int, memory: str, executor_memory: str) -> list[str]:
    """Return the command line of the server.

    Args:
        jars: the jars, at the same place in the containers of the workers.
        cores: the cores of all workers.
        memory: the heap of the server, such as `2g`.
        executor_memory: the heap of an executor.
    """
    on_the_cluster = {
        "spark.connect.grpc.binding.address": "0.0.0.0",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": "0.0.0.0",
        # The workers have no secret of it: nobody else is in their network.
        "spark.authenticate": "false",
        "spark.executor.memory": executor_memory,
        "spark.executor.extraClassPath": f"{jars}/*",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC -XX:+ExitOnOutOfMemoryError",
    }
    return connect_server_command(jars, MASTER, PORT, memory, FOLDER, cores=cores, conf=on_the_cluster)


def main() -> None:
    """Become the server."""
    settings = Settings()
    restrict_new_files(settings)
    heaps = os.environ["SPARK_DRIVER_HEAP"], os.environ["SPARK_EXECUTOR_HEAP"]
    line = command(settings.jars, int(os.environ[CORES]), *heaps)
    rmtree(scratch_folder(FOLDER), ignore_errors=True)
    scratch_folder(FOLDER).mkdir(parents=True)
    os.chdir(FOLDER)
    secret = {TOKEN: TOKEN_FILE.read_text()}
    os.execvpe(line[0], line, driver_environment(os.environ, MASTER, {**own_spark(), **secret}))


if __name__ == "__main__":
    main()

"""The command line of a Spark Connect server: that of the local stack, and that of docker-compose.yaml."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from millrace.spark_conf import launch_conf

SERVER_CLASS = "io.millrace.connect.ConnectServer"
"""With Spark's own main class, every session would compile its generated code again."""


def scratch_folder(folder: Path) -> Path:
    """Return the folder of temporary files of a server that works in `folder`."""
    return folder / "scratch"


def connect_server_command(
    jars: Path,
    master: str,
    port: int,
    memory: str,
    folder: Path,
    *,
    cores: int | None = None,
    conf: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the command line of a server, without secrets.

    Args:
        jars: the folder of its jars.
        master: its Spark master.
        port: its port.
        memory: the heap of its JVM, such as `2g`.
        folder: its working folder.
        cores: the cores of its executors; None for those of this machine.
        conf: further settings of Spark, which replace others.
    """
    # It runs for days: the second compiler costs 40 CPU-seconds once, and large merges gain more. Its JVM is set up
    # like that of a driver on one machine, wherever its executors are.
    launch = launch_conf(jars, f"local[{cores or os.cpu_count() or 2}]", large_load=True)
    settings = {
        **launch,
        # A server with a full heap answers but does not work; a server that ends is started again.
        "spark.driver.extraJavaOptions": f"{launch['spark.driver.extraJavaOptions']} -XX:+ExitOnOutOfMemoryError"
        f' "-Djava.io.tmpdir={scratch_folder(folder)}"',
        # Sessions with one class loader share generated code.
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **(conf or {}),
    }
    pairs = [part for key, value in settings.items() for part in ("--conf", f"{key}={value}")]
    return [
        *("spark-submit", "--class", SERVER_CLASS, "--name", "millrace", "--master", master),
        *("--driver-memory", memory, *pairs, "spark-internal"),
    ]

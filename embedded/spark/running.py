"""A warm Spark server for a while, for drivers that are processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.airflow.standalone import clean_environment
from embedded.home import Home, free_port
from embedded.spark.server import NAME, SparkServer
from embedded.stack_processes import stop
from millrace.settings import Settings


@contextmanager
def running_server(folder: Path) -> Iterator[SparkServer]:
    """Run a Spark Connect server that keeps its state in `folder`; it is stopped at the end of the context."""
    home = Home(folder)
    home.prepare()
    server = SparkServer(home, Settings().jars, free_port())
    try:
        server.start(clean_environment())
        yield server
    finally:
        stop(home, NAME, patience_s=15)

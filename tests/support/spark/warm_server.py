"""A warm Spark server for tests whose drivers are processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from embedded.airflow.standalone import clean_environment
from embedded.home import Home, free_port
from embedded.processes import stop
from embedded.spark.server import NAME as SPARK
from embedded.spark.server import SparkServer
from include.settings import Settings


@contextmanager
def warm_server(folder: Path) -> Iterator[SparkServer]:
    """A Spark Connect server that keeps its state in `folder`, for a while."""
    home = Home(folder)
    home.prepare()
    server = SparkServer(home, Settings().jars, free_port())
    try:
        server.start(clean_environment())
        server.wait()
        yield server
    finally:
        stop(home, SPARK, patience_s=15)

"""What the tests of the running parts share: the Spark session of the data plane's own tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from embedded.spark_server import SparkServer
from tests.spark.conftest import spark
from tests.support.lakehouse import Lakehouse
from tests.support.specs import bronze_document, gold_document, silver_document
from tests.support.warm_server import warm_server

__all__ = ["lakehouse", "spark"]


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkServer]:
    """A warm Spark server for the tests whose drivers are processes of their own."""
    with warm_server(tmp_path_factory.mktemp("spark")) as server:
        yield server


@pytest.fixture
def lakehouse(tmp_path: Path, spark: SparkSession) -> Lakehouse:
    """An empty lakehouse with one chain of tables: orders in bronze and silver, revenue by day in gold."""
    lakehouse = Lakehouse(tmp_path)
    lakehouse.specs(bronze_document(), silver_document(), gold_document())
    return lakehouse

"""What the tests of the running parts share: the Spark session of the data plane's own tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.conftest import spark
from tests.support.lakehouse import Lakehouse
from tests.support.specs import bronze_document, gold_document, silver_document

__all__ = ["lakehouse", "spark"]


@pytest.fixture
def lakehouse(tmp_path: Path, spark: SparkSession) -> Lakehouse:
    """An empty lakehouse with one chain of tables: orders in bronze and silver, revenue by day in gold."""
    lakehouse = Lakehouse(tmp_path)
    lakehouse.specs(bronze_document(), silver_document(), gold_document())
    return lakehouse

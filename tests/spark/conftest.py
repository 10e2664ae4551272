"""One classic Spark session for all tests of the data plane, with the settings that every session of Millrace has."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from include.settings import Settings
from include.spark_conf import launch_conf

MASTER = "local[2]"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A classic session on two cores; Delta, the log stores and UTC included."""
    _set_environment()
    builder = SparkSession.builder.master(MASTER).appName("millrace-tests")
    for key, value in launch_conf(Settings().jars, MASTER).items():
        builder = builder.config(key, value)
    builder = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
    session = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
    yield session
    session.stop()


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty lakehouse root of this test alone, which `Settings()` names too."""
    root = tmp_path / "lakehouse"
    root.mkdir()
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(root))
    return root


def _set_environment() -> None:
    pyspark = importlib.util.find_spec("pyspark")
    assert pyspark is not None
    assert pyspark.origin is not None
    os.environ["SPARK_HOME"] = str(Path(pyspark.origin).parent)
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["TZ"] = "UTC"
    time.tzset()

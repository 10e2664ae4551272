"""A Spark session for each file of the data plane's tests, on the server that all tests share."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.spark.shared_server import choose_server_address, shared_server

choose_server_address()

from millrace_spark.runtime.session import own_session  # noqa: E402


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """A session with the settings that every session of Millrace has, and those in `SESSION` of the file.

    To generate code for each of many small queries costs a third of their CPU-seconds. A file whose subject is what
    Spark computes has it: `SESSION = GENERATED_CODE`.
    """
    os.environ["TZ"] = "UTC"  # as on the server
    time.tzset()
    shared_server()
    with own_session(getattr(request.module, "SESSION", {})) as session:
        yield session


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty lakehouse root of this test alone, which `Settings()` names too."""
    root = tmp_path / "lakehouse"
    root.mkdir()
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(root))
    return root

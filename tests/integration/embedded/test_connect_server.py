"""The server that set-up compiles: Spark's own would compile generated code anew for each session."""

from __future__ import annotations

import subprocess
import sys

from embedded.airflow.standalone import clean_environment
from embedded.spark.server import SparkServer

ASK = """
from pyspark.sql import SparkSession
print(SparkSession.builder.getOrCreate().conf.get("spark.sql.artifact.isolation.enabled"))
"""


def test_its_sessions_share_a_class_loader_and_so_the_code_that_is_generated_for_them(server: SparkServer) -> None:
    environment = {**clean_environment(), **server.client_env()}
    asked = subprocess.run(
        [sys.executable, "-c", ASK], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert asked.stdout.split() == ["false"]

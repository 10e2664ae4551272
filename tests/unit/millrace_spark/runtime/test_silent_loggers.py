"""A driver silences what libraries log of values, and leaves PySpark the loggers that it can call."""

from __future__ import annotations

import logging
import subprocess
import sys

CODE = """
import logging
from pyspark.logger import PySparkLogger
from millrace_spark.runtime.entrypoint import silence_loggers_of_values
silence_loggers_of_values()
for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
    assert isinstance(logging.getLogger(name), PySparkLogger), name
    print(logging.getLogger(name).level)
"""


def test_the_loggers_of_pyspark_are_silent_and_of_its_own_class() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, timeout=120, check=False)
    assert (done.stdout, done.returncode) == (f"{logging.CRITICAL}\n" * 2, 0), done.stderr

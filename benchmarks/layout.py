"""How a table lies in its files: the same statement for both sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import measure

_SCRIPT = """import sys

from pyspark.sql import SparkSession

SparkSession.builder.getOrCreate().sql(f"OPTIMIZE delta.`{sys.argv[1]}` ZORDER BY ({sys.argv[2]})")
"""


def z_order(bench: Bench, table: Path, columns: Sequence[str], bytes_a_file: int) -> None:
    """Z-order the table's rows into files of about so many bytes, by plain Spark."""
    script = bench.folder / "z_order.py"
    script.write_text(_SCRIPT)
    size = ("--conf", f"spark.databricks.delta.optimize.maxFileSize={bytes_a_file}")
    command = [*bench.naive.submit(), *size, str(script), str(table), ", ".join(columns)]
    measure(command, bench.naive.environment(), bench.folder / "logs" / f"z_order.{table.name}.log")

"""Lay out a table's rows in files, by the same statement for both sides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import measure
from benchmarks.peers import Millrace

_SCRIPT = """import sys

from pyspark.sql import SparkSession

table, columns, size = sys.argv[1:]
session = SparkSession.builder.getOrCreate()
session.conf.set(*size.split("="))
session.sql(f"OPTIMIZE delta.`{table}` ZORDER BY ({columns})")
"""


def z_order(
    bench: Bench, table: Path, columns: Sequence[str], bytes_a_file: int, millrace: Millrace | None = None
) -> None:
    """Z-order the table's rows into files of about `bytes_a_file`, by plain Spark or in a session of Millrace."""
    script = bench.folder / "z_order.py"
    script.write_text(_SCRIPT)
    size = f"spark.databricks.delta.optimize.maxFileSize={bytes_a_file}"
    arguments = str(table), ", ".join(columns), size
    peer = millrace or bench.naive
    log = bench.folder / "logs" / f"z_order.{peer.name}.log"
    measure(peer.application(script, *arguments), peer.environment(), log)

"""Plain Spark: read files by a stated schema, append them as Parquet or Delta.

spark-submit by_spark.py FOLDER KIND OUT FORMAT
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from benchmarks.loading.flights import COLUMNS


def load(spark: SparkSession, folder: str, kind: str, out: str, form: str) -> None:
    """Append the typed rows of the files of `folder` to `out`."""
    reader = spark.read.option("header", "true").option("recursiveFileLookup", "true")
    rows = reader.schema(", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())).format(kind).load(folder)
    rows.write.format(form).mode("append").save(out)


if __name__ == "__main__":
    load(SparkSession.builder.appName("load").getOrCreate(), *sys.argv[1:])

"""The training run of the class archive: a small load like those of the jobs. Argument: a folder to work in."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def train(spark: SparkSession, folder: Path) -> None:
    """Read lines, append, merge, read the changes and replace a part, each once."""
    table, lines = f"delta.`{folder}/table`", folder / "lines.json"
    folder.mkdir(parents=True)
    lines.write_text('{"key": "a", "day": "2013-01-01", "amount": "1"}\n{"key": "b", "day": "x"}\n')
    spark.sql(f"CREATE TABLE {table} (key STRING, day DATE, amount INT) USING delta "
              "TBLPROPERTIES (delta.enableChangeDataFeed = true)")  # fmt: skip
    fields = F.from_json("value", "map<string,string>")
    rows = spark.read.text(str(lines)).select(
        fields["key"].alias("key"),
        fields["day"].try_cast("date").alias("day"),
        fields["amount"].try_cast("int").alias("amount"),
    )
    cached = rows.localCheckpoint()
    cached.write.format("delta").mode("append").save(f"{folder}/table")
    latest = cached.groupBy("key").agg(F.max_by(F.struct("day", "amount"), F.xxhash64("day")).alias("last"))
    latest.select("key", "last.*").createOrReplaceTempView("changes")
    spark.sql(f"MERGE INTO {table} t USING changes s ON t.key = s.key AND t.key BETWEEN 'a' AND 'b' "
              "WHEN MATCHED THEN UPDATE SET t.amount = 2 WHEN NOT MATCHED THEN INSERT *").collect()  # fmt: skip
    changes = spark.read.format("delta").option("readChangeFeed", "true").option("startingVersion", 1)
    changes.load(f"{folder}/table").groupBy("day").agg(F.sum("amount").alias("amount")).collect()
    part = spark.read.format("delta").option("versionAsOf", 2).load(f"{folder}/table").where("key = 'a'")
    part.write.format("delta").mode("overwrite").option("replaceWhere", "key = 'a'").save(f"{folder}/table")
    spark.read.option("header", "true").csv(str(lines)).count()


if __name__ == "__main__":
    train(SparkSession.builder.getOrCreate(), Path(sys.argv[1]))

"""Plain Spark: the latest event of each order of a source and a day, merged by key into the source's partitions.

spark-submit by_spark.py BRONZE SILVER DAY COUNTRY...

The condition names the partitions, so that two merges of different sources do not conflict.
"""

from __future__ import annotations

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

COLUMNS = ("id", "customer", "amount", "status", "country", "ts", "md5")


def merge(spark: SparkSession, bronze: str, silver: str, day: str, *countries: str) -> None:
    """Merge the day's events into silver; a late event changes nothing."""
    events = spark.read.format("delta").load(bronze).where(F.col("_interval_start") == F.lit(day).cast("timestamp"))
    newest_first = Window.partitionBy("country", "id").orderBy(F.desc("ts"))
    latest = events.withColumn("place", F.row_number().over(newest_first)).where("place = 1").select(*COLUMNS)
    if not DeltaTable.isDeltaTable(spark, silver):
        latest.write.format("delta").partitionBy("country").save(silver)
        return
    own = ", ".join(f"'{country}'" for country in countries)
    condition = f"t.country IN ({own}) AND t.country = s.country AND t.id = s.id"
    merged = DeltaTable.forPath(spark, silver).alias("t").merge(latest.alias("s"), condition)
    merged.whenMatchedUpdateAll(condition="s.ts > t.ts").whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    merge(SparkSession.builder.appName("source").getOrCreate(), *sys.argv[1:])

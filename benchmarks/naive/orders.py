"""N's silver of the orders: the latest event of each order of the day, merged by key only.

spark-submit orders.py LAKE LANDING DAY
"""

from __future__ import annotations

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

COLUMNS = ("id", "customer", "amount", "status", "country", "ts", "md5")


def load(spark: SparkSession, lake: str, _landing: str, day: str) -> None:
    """Merge the day's events into silver; a late event changes nothing."""
    events = spark.read.format("delta").load(f"{lake}/bronze/orders")
    events = events.where(F.col("_interval_start") == F.lit(day).cast("timestamp"))
    newest_first = Window.partitionBy("id").orderBy(F.desc("ts"))
    latest = events.withColumn("place", F.row_number().over(newest_first)).where("place = 1").select(*COLUMNS)
    silver = f"{lake}/silver/orders"
    if not DeltaTable.isDeltaTable(spark, silver):
        latest.write.format("delta").save(silver)
        return
    merge = DeltaTable.forPath(spark, silver).alias("t").merge(latest.alias("s"), "t.id = s.id")
    merge.whenMatchedUpdateAll(condition="s.ts > t.ts").whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    load(SparkSession.builder.appName("orders").getOrCreate(), *sys.argv[1:])

"""N's silver: the latest event of each flight of the day, merged by key only.

spark-submit silver.py LAKE LANDING DAY
"""

from __future__ import annotations

import sys

from delta.tables import DeltaTable
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

NEWER = "s.event_at > t.event_at OR (s.event_at = t.event_at AND s.event_seq > t.event_seq)"


def load(spark: SparkSession, lake: str, _landing: str, day: str) -> None:
    """Merge the day's events into silver; a late event changes nothing."""
    events = spark.read.format("delta").load(f"{lake}/bronze/flight_events").where(F.col("day") == day)
    newest_first = Window.partitionBy("flight_id").orderBy(F.desc("event_at"), F.desc("event_seq"))
    latest = events.withColumn("place", F.row_number().over(newest_first)).where("place = 1")
    latest = latest.drop("place", "op", "event", "day")
    silver = f"{lake}/silver/flights"
    if not DeltaTable.isDeltaTable(spark, silver):
        latest.write.format("delta").save(silver)
        return
    merge = DeltaTable.forPath(spark, silver).alias("t").merge(latest.alias("s"), "t.flight_id = s.flight_id")
    merge.whenMatchedUpdateAll(condition=NEWER).whenNotMatchedInsertAll().execute()


if __name__ == "__main__":
    load(SparkSession.builder.appName("silver").getOrCreate(), *sys.argv[1:])

"""N's bronze: read the day's files, append them.

spark-submit bronze.py LAKE LANDING DAY
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

SCHEMA = """
    flight_id string, op string, event string, event_at timestamp, event_seq int, status string, flight_date date,
    carrier string, flight_number int, origin string, dest string, tailnum string, sched_dep_at timestamp,
    sched_arr_at timestamp, dep_at timestamp, arr_at timestamp, dep_delay_min int, arr_delay_min int,
    air_time_min int, distance_miles int
"""


def load(spark: SparkSession, lake: str, landing: str, day: str) -> None:
    """Append the events of the day's folder to bronze."""
    events = spark.read.schema(SCHEMA).json(f"{landing}/flight_events/date={day}")
    events = events.withColumn("day", F.lit(day).cast("date"))
    events.write.format("delta").mode("append").save(f"{lake}/bronze/flight_events")


if __name__ == "__main__":
    load(SparkSession.builder.appName("bronze").getOrCreate(), *sys.argv[1:])

"""N's gold: every route and day, recomputed and overwritten as a whole.

spark-submit gold.py LAKE LANDING DAY
"""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F


def load(spark: SparkSession, lake: str, _landing: str, _day: str) -> None:
    """Overwrite gold with the punctuality of each route on each day."""
    flights = spark.read.format("delta").load(f"{lake}/silver/flights")
    late = F.count_if(F.col("arr_delay_min") >= 15)
    routes = flights.groupBy("flight_date", "origin", "dest").agg(
        F.count("*").alias("flights"),
        F.count("dep_at").alias("departed"),
        F.count("arr_at").alias("arrived"),
        F.count_if(F.col("status") == "cancelled").alias("cancelled"),
        late.alias("delayed_15"),
        (100 * late.cast("double") / F.nullif(F.count("arr_delay_min"), F.lit(0))).alias("pct_delayed_15"),
        F.avg("dep_delay_min").alias("avg_dep_delay_min"),
        F.avg("arr_delay_min").alias("avg_arr_delay_min"),
        F.max("arr_delay_min").alias("max_arr_delay_min"),
    )
    routes.write.format("delta").mode("overwrite").save(f"{lake}/gold/route_performance_daily")


if __name__ == "__main__":
    load(SparkSession.builder.appName("gold").getOrCreate(), *sys.argv[1:])

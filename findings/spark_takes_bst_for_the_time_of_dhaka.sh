#!/bin/sh
# PySpark 4.1.3: text with the short name of a zone, cast to a timestamp.
# Expected: British Summer Time, one hour ahead of UTC in June, or null as for other words. Seen: six hours ahead, as Java's
# old list of short names says (BST is Asia/Dhaka there); to_timestamp with the pattern letter z reads it as yet another one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3
"$folder/venv/bin/python" - <<'PY'
from pyspark.sql import SparkSession

conf = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
query = """SELECT cast('2024-06-30 12:00:00 BST' AS timestamp)::string AS cast_,
           try_to_timestamp('2024-06-30 12:00:00 BST', 'yyyy-MM-dd HH:mm:ss z')::string AS by_pattern"""
seen = tuple(spark.sql(query).first())
print(seen)
spark.stop()
assert seen == ("2024-06-30 06:00:00", "2024-06-30 01:00:00"), "changed"
PY

#!/bin/sh
# Version: PySpark 4.1.3. Text with the short name of a zone, cast to a timestamp.
# Expected: British Summer Time, one hour ahead of UTC, or null as for other words; cast and pattern agree.
# Seen: the cast takes six hours, as Java's old list of short names does (BST is Asia/Dhaka there), the pattern letter z eleven.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(pyspark)=="
echo "expected: 11:00 or null, twice"
"$folder/venv/bin/python" - <<'PY'
from pyspark.sql import SparkSession

conf = {"spark.ui.enabled": "false", "spark.sql.session.timeZone": "UTC"}
spark = SparkSession.builder.master("local[1]").config(map=conf).getOrCreate()
query = """SELECT cast('2024-06-30 12:00:00 BST' AS timestamp)::string AS cast_,
           try_to_timestamp('2024-06-30 12:00:00 BST', 'yyyy-MM-dd HH:mm:ss z')::string AS by_pattern"""
seen = tuple(spark.sql(query).first())
spark.stop()
print("seen:", *seen)
assert seen == ("2024-06-30 06:00:00", "2024-06-30 01:00:00"), "changed"
PY

#!/bin/sh
# Version: PySpark 4.1.3, ANSI mode on. A Parquet column of INT32, read by a schema that says smallint.
# Expected: an error, as for bigint read as int, or null. Seen: 70000 is read as 4464.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3 pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(pyspark|pyarrow)=="
echo "expected: an error or null for 70000"
"$folder/venv/bin/python" - "$folder/a.parquet" <<'PY'
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

pq.write_table(pa.table({"v": pa.array([70_000, 5], pa.int32())}), sys.argv[1])
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
ansi = spark.conf.get("spark.sql.ansi.enabled")
seen = [row.v for row in spark.read.schema("v smallint").parquet(sys.argv[1]).collect()]
spark.stop()
print("seen:", seen, "with ANSI mode", ansi)
assert ansi == "true"
assert seen == [4464, 5], "changed"
PY

#!/bin/sh
# Version: PySpark 4.1.3. A cast fails at a value, and the program catches the error.
# Expected: what the program prints, and nothing else. Seen: a logger of PySpark prints the whole error, with the value, to
# stderr. It is a Python logger, so Spark's own log level (here OFF) does not count.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3

"$folder/venv/bin/pip" list --format freeze | grep -E "^pyspark=="
echo "expected: stderr without the value ann-lee"
cat > "$folder/caught.py" <<'PY'
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
names = spark.createDataFrame([("ann-lee",)], "name string")
try:
    names.select(names.name.cast("int")).collect()
except PySparkException as error:
    print("caught:", error.getCondition())
PY
"$folder/venv/bin/python" "$folder/caught.py" 2> "$folder/stderr" | tee "$folder/stdout"
grep -q "^caught: CAST_INVALID_INPUT$" "$folder/stdout"
seen=$(grep -o '"logger": *"[A-Za-z]*"' "$folder/stderr" | sort -u)
echo "seen: $(grep -c ann-lee "$folder/stderr") lines of stderr with the value, $seen"
grep ann-lee "$folder/stderr" | grep -q QueryContextLogger

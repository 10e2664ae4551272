#!/bin/sh
# Version: PySpark 4.1.3. A program sets the level of PySpark's logger SQLQueryContextLogger before any error, then catches
# the error of a cast.
# Expected: a PySparkException. Seen: a TypeError from the logging module. PySpark passes keywords that only its own class
# of loggers takes, and Python makes a plain logger of whoever asks for the name first.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3

"$folder/venv/bin/pip" list --format freeze | grep -E "^pyspark=="
echo "expected: PySparkException"
cat > "$folder/levels.py" <<'PY'
import logging

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

logging.getLogger("SQLQueryContextLogger").setLevel(logging.ERROR)
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    spark.sql("SELECT cast(word AS int) FROM VALUES ('a word') AS w (word)").collect()
except PySparkException:
    print("seen: PySparkException")
except TypeError as error:
    print("seen: TypeError:", error)
PY
"$folder/venv/bin/python" "$folder/levels.py" 2> "$folder/stderr" | tee "$folder/stdout"
grep -q "^seen: TypeError: .*errorClass" "$folder/stdout"

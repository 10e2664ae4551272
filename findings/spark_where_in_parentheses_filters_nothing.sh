#!/bin/sh
# Version: PySpark 4.1.3, with its default settings (ANSI mode). A table of one boolean column is filtered by WHERE (x).
# Expected: one row, as for WHERE x. Seen: both rows, and no error. WHERE is no reserved word, so Spark reads an alias, the name
# WHERE with the column x. Of a table with two columns the same text is an error about their number; after `AS t` it filters.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyspark==4.1.3

"$folder/venv/bin/pip" list --format freeze | grep -E "^pyspark=="
cat > "$folder/filters.py" <<'PY'
from pyspark.sql import SparkSession

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
spark.sql("SELECT true AS x UNION ALL SELECT false").createOrReplaceTempView("t")
for text in ("WHERE x", "WHERE (x)", "AS t WHERE (x)"):
    print(f"FROM t {text}: {spark.sql(f'SELECT * FROM t {text}').count()} of 2 rows")
PY
echo "expected: 1 of 2 rows, three times"
"$folder/venv/bin/python" "$folder/filters.py" 2> "$folder/stderr" | tee "$folder/stdout"
grep -q "^FROM t WHERE x: 1 of 2 rows$" "$folder/stdout"
grep -q "^FROM t WHERE (x): 2 of 2 rows$" "$folder/stdout"
grep -q "^FROM t AS t WHERE (x): 1 of 2 rows$" "$folder/stdout"

#!/bin/sh
# Version: Polars 2.1.0, PyArrow 25.0.0, DuckDB 1.5.5. A Parquet file with a column of the type Int128.
# Expected: other readers see a number, or at least the other columns.
# Seen: the file says only that the column has 16 bytes a value; Arrow opens no column of it, and DuckDB gives bytes.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 pyarrow==25.0.0 duckdb==1.5.5

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(polars|pyarrow|duckdb)=="
echo "expected: the column wide as a number, and the column name"
"$folder/venv/bin/python" - "$folder" <<'PY'
import sys

import duckdb
import polars as pl
import pyarrow.parquet as pq

file = f"{sys.argv[1]}/rows.parquet"
pl.DataFrame({"wide": [2**100], "name": ["a"]}, schema={"wide": pl.Int128, "name": pl.String}).write_parquet(file)
try:
    arrow = pq.read_table(file, columns=["name"]).to_pylist()
except Exception as error:
    arrow = type(error).__name__
value = duckdb.sql(f"SELECT wide FROM '{file}'").fetchone()[0]
print("seen: Arrow:", arrow, "DuckDB:", type(value).__name__)
assert isinstance(arrow, str) and isinstance(value, bytes), "changed"
PY

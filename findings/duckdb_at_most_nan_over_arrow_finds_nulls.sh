#!/bin/sh
# Version: DuckDB 1.5.5, PyArrow 25.0.0. Filters on doubles over an Arrow dataset.
# Expected: the rows that the same query finds in DuckDB's own table.
# Seen: `x <= NaN` finds null as well, `x > 1` loses NaN, and `x IN (0.0, 7.0)` loses -0.0: Arrow filters alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==1.5.5 pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(duckdb|pyarrow)=="
echo "expected: x <= NaN in 3 rows of 4, x > 1 in 2, x IN (0.0, 7.0) in 1, over Arrow as in DuckDB's own table"
"$folder/venv/bin/python" - "$folder" <<'PY'
import sys

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

file = f"{sys.argv[1]}/rows.parquet"
pq.write_table(pa.table({"x": pa.array([None, -0.0, 2.0, float("nan")], pa.float64())}), file)
dataset = ds.dataset(file)
con = duckdb.connect()
con.register("arrow", dataset)
con.execute("CREATE TABLE own AS SELECT * FROM arrow")
for predicate, expected, wrong in (
    ("x <= 'nan'::double", 3, 4),
    ("x > 1", 2, 1),
    ("x IN (0.0, 7.0)", 1, 0),
):
    own, over_arrow = (
        con.execute(f"SELECT count(*) FROM {table} WHERE {predicate}").fetchone()[0] for table in ("own", "arrow")
    )
    print(f"seen: {predicate} in {own} rows of the own table, in {over_arrow} over Arrow")
    assert (own, over_arrow) == (expected, wrong), "changed"
PY

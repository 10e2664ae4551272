#!/bin/sh
# Version: Polars 2.1.0, PyArrow 25.0.0. A filter `NOT IN` over scan_pyarrow_dataset.
# Expected: the rows that the same filter finds in memory: a null is neither in a list nor outside of it.
# Seen: the rows with a null are found as well.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(polars|pyarrow)=="
echo "expected: [3] in memory and over Arrow's dataset"
"$folder/venv/bin/python" - "$folder" <<'PY'
import sys

import polars as pl
import pyarrow.dataset as ds

file = f"{sys.argv[1]}/rows.parquet"
rows = pl.DataFrame({"n": [1, 2, 3, None]})
rows.write_parquet(file)
outside = ~pl.col("n").is_in([1, 2])
in_memory = rows.filter(outside)["n"].to_list()
over_arrow = pl.scan_pyarrow_dataset(ds.dataset(file)).filter(outside).collect()["n"].to_list()
print("seen:", in_memory, "in memory,", over_arrow, "over Arrow's dataset")
assert (in_memory, over_arrow) == ([3], [3, None]), "changed"
PY

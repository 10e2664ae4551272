#!/bin/sh
# Version: fastparquet 2026.9.0, pandas 3, PyArrow 25.0.0. Times in microseconds, written with times="int96".
# Expected: the times that were written.
# Seen: they are taken for nanoseconds: 2024-06-30 becomes a day of January 1970, without an error.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet fastparquet==2026.9.0 pandas==3.0.0 pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(fastparquet|pandas|pyarrow)=="
echo "expected: 2024-06-30 12:00:00"
"$folder/venv/bin/python" - "$folder" <<'PY'
import sys

import fastparquet
import pandas as pd
import pyarrow.parquet as pq

file = f"{sys.argv[1]}/rows.parquet"
times = pd.DataFrame({"at": pd.to_datetime(["2024-06-30 12:00:00"]).as_unit("us")})
fastparquet.write(file, times, times="int96")
seen = pq.read_table(file)["at"].to_pylist()[0]
print("seen:", seen)
assert seen.year == 1970, "changed"
PY

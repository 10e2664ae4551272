#!/bin/sh
# Version: pyarrow 25.0.0. Timestamps in nanoseconds, cast to microseconds with safe=False.
# Expected: each time goes to the microsecond in which it lies, as by floor.
# Seen: the digits are cut off, so that a time before 1970 becomes later: -1 ns is 1970-01-01 00:00:00.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(pyarrow)=="
echo "expected: 1999, -1 and -1001 ns are 1, -1 and -2 us"
"$folder/venv/bin/python" - <<'PY'
import pyarrow as pa

times = pa.array([1_999, -1, -1_001], pa.timestamp("ns"))
seen = times.cast(pa.timestamp("us"), safe=False).cast(pa.int64()).to_pylist()
print("seen:", seen, "us")
assert seen == [1, 0, -1], "changed"
PY

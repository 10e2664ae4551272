#!/bin/sh
# Version: deltalake 1.6.6, pyarrow 26.0.1. A table with a text column, from which a DELETE removes one of two rows;
# then its data file is read by pyarrow.parquet, as any other.
# Expected: the column is a string, as in the file that was written first, and can be compared with a text.
# Seen: the rewritten file says string_view (Parquet itself has one type for both), for which Arrow's equal, is_in,
# starts_with and match_substring have no kernel: code that reads data files works until the first DELETE.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(deltalake|pyarrow)=="
echo "expected: string string, and one row that equals y"
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import sys

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake


def stored():
    [file] = DeltaTable(sys.argv[1]).file_uris()
    return pq.read_table(file)["text"]


write_deltalake(sys.argv[1], pa.table({"n": [1, 2], "text": ["x", "y"]}))
before = stored().type
DeltaTable(sys.argv[1]).delete("n = 1")
try:
    compared = pc.equal(stored(), "y")
except pa.ArrowNotImplementedError as error:
    compared = type(error).__name__
print("seen:", before, stored().type, compared)
assert (str(before), str(stored().type), compared) == ("string", "string_view", "ArrowNotImplementedError"), "changed"
PY

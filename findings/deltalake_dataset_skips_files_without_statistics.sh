#!/bin/sh
# Version: deltalake 1.6.6, pyarrow 25.0.0. The dataset of a table whose statistics were switched on later.
# Expected: a filter finds the rows of every file; a file without bounds is read.
# Seen: that file is skipped, without an error, because its fragment promises `v >= null`.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==25.0.0

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(deltalake|pyarrow)=="
echo "expected: v > 0 in the rows 1 and 2"
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import sys

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, write_deltalake

path = sys.argv[1]
only_id = {"delta.dataSkippingStatsColumns": "id"}
write_deltalake(path, pa.table({"id": [1], "v": [10]}), configuration=only_id)
DeltaTable(path).alter.set_table_properties({"delta.dataSkippingStatsColumns": "id,v"})
write_deltalake(path, pa.table({"id": [2], "v": [20]}), mode="append")
dataset = DeltaTable(path).to_pyarrow_dataset()
every = sorted(dataset.to_table()["id"].to_pylist())
found = sorted(dataset.to_table(filter=ds.field("v") > 0)["id"].to_pylist())
print("seen: v > 0 in the rows", found, "of", every)
assert every == [1, 2]
assert found == [2], "changed: the file without statistics is read now"
PY

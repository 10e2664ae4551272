#!/bin/sh
# Version: deltalake 1.6.6. delta.enableDeletionVectors set on a table without a column of the type variant.
# Expected: the table's protocol gains the feature deletionVectors.
# Seen: it gains variantType, too, which readers must know, although no column has it: readers that know deletion
# vectors and not variant refuse the table from then on.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(deltalake)=="
echo "expected: reader features deletionVectors"
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import sys

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

write_deltalake(sys.argv[1], pa.table({"a": [1]}))
DeltaTable(sys.argv[1]).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
seen = sorted(DeltaTable(sys.argv[1]).protocol().reader_features)
print("seen: reader features", *seen)
assert seen == ["deletionVectors", "variantType"], "changed: only what was asked for is added now"
PY

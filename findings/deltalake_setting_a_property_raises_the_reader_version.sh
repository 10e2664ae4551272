#!/bin/sh
# Version: deltalake 1.6.6. set_table_properties() on a table with writer features, as all tables of Spark have them.
# Expected: the property is set, and the protocol stays: reader version 1.
# Seen: the same commit raises the reader version to 2, whatever the property is.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(deltalake)=="
echo "expected: reader version 1 before, 1 after"
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import json
import sys
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

DeltaTable.create(sys.argv[1], pa.schema([("n", pa.int64())]))
first = Path(sys.argv[1], "_delta_log", f"{0:020d}.json")
lines = [json.loads(line) for line in first.read_text().splitlines()]
for line in lines:
    if "protocol" in line:
        line["protocol"] = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["appendOnly", "invariants"]}
first.write_text("".join(json.dumps(line) + "\n" for line in lines))
before = DeltaTable(sys.argv[1]).protocol().min_reader_version
DeltaTable(sys.argv[1]).alter.set_table_properties({"owner": "ann"}, raise_if_not_exists=False)
after = DeltaTable(sys.argv[1]).protocol().min_reader_version
print("seen: reader version", before, "before,", after, "after")
assert (before, after) == (1, 2), "changed: a property can be set by deltalake"
PY

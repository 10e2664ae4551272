#!/bin/sh
# Version: deltalake 1.6.6. A table with delta.enableExpiredLogCleanup = false, whose commits are older than the
# retention of its log; cleanup_metadata() after a checkpoint.
# Expected: every commit stays, as Delta's documentation of the property says, and as deltalake itself does with the
# clean-up that follows a checkpoint.
# Seen: the commits below the checkpoint are deleted, and their versions cannot be read any more.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet deltalake==1.6.6 pyarrow==26.0.1

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(deltalake)=="
echo "expected: 4 commits before, 4 after"
"$folder/venv/bin/python" - "$folder/table" <<'PY'
import os
import sys
import time
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

log = Path(sys.argv[1]) / "_delta_log"
kept = {"delta.enableExpiredLogCleanup": "false", "delta.logRetentionDuration": "interval 1 days"}
write_deltalake(sys.argv[1], pa.table({"n": [0]}), configuration=kept)
for number in range(1, 4):
    write_deltalake(sys.argv[1], pa.table({"n": [number]}), mode="append")
DeltaTable(sys.argv[1]).create_checkpoint()
for number, file in enumerate(sorted(log.iterdir())):
    os.utime(file, (then := time.time() - 40 * 86400 + number, then))
before = len(list(log.glob("*.json")))
DeltaTable(sys.argv[1]).cleanup_metadata()
after = len(list(log.glob("*.json")))
print("seen:", before, "commits before,", after, "after")
assert (before, after < before) == (4, True), "changed: the property counts now"
PY

#!/bin/sh
# Version: DuckDB 1.5.5. read_json with the column type VARCHAR.
# Expected: the text of a number as the file has it.
# Seen: a number with a point goes through a double, so that zeros and digits are lost. read_json_objects keeps the text.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==1.5.5

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(duckdb)=="
echo "expected: 1.50 and 12345678901234567.89"
printf '{"price": 1.50, "amount": 12345678901234567.89}\n' > "$folder/a.json"
"$folder/venv/bin/python" - "$folder/a.json" <<'PY'
import sys

import duckdb

columns = "{'price': 'VARCHAR', 'amount': 'VARCHAR'}"
seen = duckdb.sql(f"FROM read_json('{sys.argv[1]}', columns = {columns}, format = 'newline_delimited')").fetchone()
whole = duckdb.sql(f"SELECT json::VARCHAR FROM read_json_objects('{sys.argv[1]}')").fetchone()[0]
print("seen:", *seen, "and by read_json_objects", whole)
assert "1.50" in whole and "12345678901234567.89" in whole
assert seen == ("1.5", "1.2345678901234568e+16"), "changed: the digits are kept now"
PY

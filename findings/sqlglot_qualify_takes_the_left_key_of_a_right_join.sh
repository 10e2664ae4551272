#!/bin/sh
# Version: sqlglot 30.30.0, against DuckDB 1.5.5. A column of USING after a RIGHT or a FULL JOIN, resolved by `qualify`.
# Expected: the key of the right table, or of both (COALESCE), as the SQL standard and engines have it.
# Seen: a third table is joined by the key of the left table, which is null in the rows that only the right one has; the
# qualified query has other rows than the query.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sqlglot==30.30.0 duckdb==1.5.5

"$folder/venv/bin/pip" list --format freeze | grep -iE "^(sqlglot|duckdb)=="
echo "expected: the same rows, with the name x for the key 2"
"$folder/venv/bin/python" - <<'PY'
import duckdb
import sqlglot
from sqlglot.optimizer.qualify import qualify

query = "SELECT k, t.name FROM f RIGHT JOIN w USING (k) LEFT JOIN t USING (k) ORDER BY w.k"
schema = {"f": {"k": "int"}, "w": {"k": "int"}, "t": {"k": "int", "name": "text"}}
qualified = qualify(sqlglot.parse_one(query, dialect="duckdb"), schema=schema, dialect="duckdb").sql(dialect="duckdb")
lake = duckdb.connect()
for name, rows in {"f": "(1)", "w": "(1), (2)"}.items():
    lake.sql(f"CREATE TABLE {name} AS SELECT * FROM (VALUES {rows}) AS v (k)")
lake.sql("CREATE TABLE t AS SELECT * FROM (VALUES (2, 'x')) AS v (k, name)")
before, after = lake.sql(query).fetchall(), lake.sql(qualified).fetchall()
print("seen: the query", before, "and the qualified one", after)
assert before == [(1, None), (2, "x")], before
assert after != before, "changed: both have the same rows now"
PY

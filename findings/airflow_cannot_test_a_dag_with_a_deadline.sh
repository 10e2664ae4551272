#!/bin/sh
# Version: apache-airflow 3.3.2. A DAG with a DeadlineAlert is run by its own `dag.test()`.
# Expected: the run ends, as it does for the same DAG without a deadline. Seen: before its first task the run ends with a
# StatementError, "'dict' object has no attribute 'hex'". The scheduler runs the same DAG.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apache-airflow==3.3.2

"$folder/venv/bin/pip" list --format freeze | grep -E "^apache-airflow=="
export AIRFLOW_HOME="$folder/home" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__DAGS_FOLDER="$folder/dags"
mkdir "$folder/dags"
cat > "$folder/dags/late.py" <<'PY'
import sys
from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG, DeadlineAlert, DeadlineReference, SyncCallback, task


def tell(context):
    pass


late = DeadlineAlert(
    reference=DeadlineReference.DAGRUN_QUEUED_AT, interval=timedelta(hours=6), callback=SyncCallback(tell)
)
has_deadline = sys.argv[1:] == ["deadline"]
with DAG(
    "late", schedule=None, start_date=datetime(2025, 1, 1, tzinfo=UTC), deadline=late if has_deadline else None
) as dag:

    @task
    def one():
        return 1

    one()

if __name__ == "__main__":
    print("state:", dag.test(logical_date=datetime(2025, 1, 5 + has_deadline, tzinfo=UTC)).state)
PY
"$folder/venv/bin/airflow" db migrate > "$folder/migrated" 2>&1
echo "expected: state: success, twice"
"$folder/venv/bin/python" "$folder/dags/late.py" > "$folder/without" 2>&1
grep "^state:" "$folder/without"
"$folder/venv/bin/python" "$folder/dags/late.py" deadline > "$folder/with" 2>&1 || true
echo "seen with a deadline: $(grep -m 1 -o "(builtins.AttributeError).*" "$folder/with")"
grep -q "^state: success" "$folder/without" && grep -q "'dict' object has no attribute 'hex'" "$folder/with"

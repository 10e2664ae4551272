#!/bin/sh
# Version: Airflow 3.3.2, its standard provider 1.21.0. An asset event with a partition key, and a DAG with schedule=[asset].
# Expected: the DAG starts, as with each event of the asset: what it waits for knows nothing of keys.
# Seen: only an event without a key is queued for the DAG. One with a key is for partitioned schedules alone.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apache-airflow==3.3.2 apache-airflow-providers-standard==1.21.0
export AIRFLOW_HOME="$folder" AIRFLOW__CORE__LOAD_EXAMPLES=False AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION=False
mkdir "$folder/dags"
cat >"$folder/dags/waiting.py" <<'PY'
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset

with DAG("waiting", schedule=[Asset("table")]):
    EmptyOperator(task_id="done")
PY
export PATH="$folder/venv/bin:$PATH"
{ airflow db migrate && airflow dags reserialize; } >"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }

pip list --format freeze | grep -E "^apache-airflow(-providers-standard)?=="
echo "expected: 1 run queued by an event without a key, 1 by an event with one"
python - 2>>"$folder/log" <<'PY'
from airflow.assets.manager import AssetManager
from airflow.models.asset import AssetDagRunQueue, AssetModel
from airflow.utils.session import create_session
from sqlalchemy import delete, func, select


def queued(key: str | None) -> int:
    with create_session() as session:
        session.execute(delete(AssetDagRunQueue))
        asset = session.scalars(select(AssetModel).where(AssetModel.name == "table")).one()
        assert AssetManager.register_asset_change(asset=asset, partition_key=key, session=session)
        session.flush()
        return session.scalar(select(func.count()).select_from(AssetDagRunQueue))


seen = queued(None), queued("2026-01-01")
print(f"seen: {seen[0]} by an event without a key, {seen[1]} by an event with one")
assert seen == (1, 0), "changed"
PY

"""Pages about a lakehouse in a bucket, which the API server reaches by a connection of Airflow alone."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from airflow.models.dag import DagModel
from deltalake import DeltaTable
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session

from embedded.servers.s3 import Bucket, s3_bucket
from lakehouse_airflow.ui.links import backfill_plan_path, lakehouse_path, table_path
from millrace.contracts.job.report import RowCounts
from millrace.contracts.lake_path import S3Path
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import Stream, Winner
from millrace.control.storage.s3_access import delta_rs_options, s3_client, store_access
from millrace.paths import LakehousePaths
from tests.support.airflow.shown_page import show
from tests.support.airflow.shown_runs import BUNDLE
from tests.support.documents.specs import bronze_document, write_specs
from tests.support.ledger.delta_tables import ROWS, intent_of

WRONG = {"AWS_ACCESS_KEY_ID": "of another system", "AWS_SECRET_ACCESS_KEY": "wrong"}


@pytest.fixture
def bucket() -> Iterator[Bucket]:
    with s3_bucket("shown") as bucket:
        yield bucket


@pytest.fixture
def lakehouse(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lakehouse with one batch, whose credentials only the connection has."""
    paths = LakehousePaths(S3Path(f"s3://{bucket.name}/{tmp_path.name}"))
    write_specs(tmp_path, bronze_document())
    with store_access(bucket.environment):
        path = paths.table("bronze.orders")
        table = DeltaTable.create(str(path), ROWS, storage_options=delta_rs_options())
        intent = intent_of(str(table.metadata().id), stream=Stream("bronze.orders"))
        ledger, winner = Ledger(paths), Winner(intent, 1)
        ledger.record_intent(intent)
        ledger.record_committed([winner])
        ledger.record_closed(winner, RowCounts(read=7, applied=7, inserted=7))
    secret = bucket.environment
    extra = {"endpoint_url": bucket.endpoint, "region_name": secret["AWS_DEFAULT_REGION"]}
    connection = {"conn_type": "aws", "login": secret["AWS_ACCESS_KEY_ID"]}
    connection |= {"password": secret["AWS_SECRET_ACCESS_KEY"], "extra": json.dumps(extra)}
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(connection))
    for name in secret:
        monkeypatch.delenv(name, raising=False)
    for name, value in {**WRONG, "LAKEHOUSE_S3_CONNECTION": "store"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("LAKEHOUSE_ROOT", str(paths.root))
    monkeypatch.setenv("LAKEHOUSE_TABLES", str(tmp_path))


@pytest.mark.usefixtures("lakehouse")
def test_pages_read_the_bucket_by_the_connection_and_leave_the_environment_as_it_is(
    server: TestClient, database: Session, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "not checked" in show(server, lakehouse_path("tables")).row("bronze.orders")
    assert "load of 2013-01-01" in show(server, table_path("bronze.orders", "versions")).words
    assert {name: os.environ[name] for name in WRONG} == WRONG
    assert "AWS_ENDPOINT_URL_S3" not in os.environ

    write_specs(tmp_path, bronze_document("bronze.bills"), domain="bills")
    landing = f"s3://{bucket.name}/landing"
    monkeypatch.setenv("LAKEHOUSE_LANDING", landing)
    with store_access(bucket.environment):
        s3_client().put_object(Bucket=bucket.name, Key="landing/bills/date=2013-01-02/a.json", Body=b"{}\n")
    dag = DagModel(dag_id="bills", bundle_name=BUNDLE, is_stale=False)
    database.add(dag)
    database.commit()
    try:
        rows = show(server, f"{backfill_plan_path('bills')}?first=2013-01-01&last=2013-01-02").rows
    finally:
        database.delete(dag)
        database.commit()
    planned = [row[:3] for row in rows if row[:1] == ["bronze.bills"]][1:]
    assert planned == [
        ["bronze.bills", "not ready", f"no landing folder {landing}/bills/date=2013-01-01"],
        ["bronze.bills", "writes", planned[1][2]],
    ]
    assert planned[1][2].startswith("1 new of 1 file")

"""Bronze from a bucket, on real Delta and a real S3 server: every object once, by its entity tag."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.file_status import FileStatus
from include.control.landing.file_states import file_states
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.storage.faulty_s3 import Fault, cut, fail_inside, faulty_s3, slow_down

ORDERS = "bronze.orders"
DAY = "landing/orders/date=2013-01-01"
ODD = "a b+c[1]{2}%2B*.json"


@pytest.fixture(scope="module")
def store() -> Iterator[Bucket]:
    with s3_bucket("first") as bucket:
        yield bucket


@pytest.fixture
def bucket(store: Bucket, lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The bucket that the lakehouse's files land in."""
    bucket = Bucket(store.endpoint, f"lake-{uuid4().hex[:8]}")
    bucket.client.create_bucket(Bucket=bucket.name)
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    lakehouse.landing = f"s3a://{bucket.name}/landing"
    return bucket


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_every_object_is_loaded_once_and_named_by_its_path_below_the_root(lakehouse: Lakehouse, bucket: Bucket) -> None:
    bucket.put(f"{DAY}/{ODD}", lines(order(1, 5), order(2, "?")))
    bucket.put(f"{DAY}/eu/d.json", lines(order(3, 7)) + "no record\n")
    first, again = lakehouse.run(ORDERS), lakehouse.run(ORDERS)
    assert (first.outcome, first.rows.read, first.rows.quarantined) == (Outcome.COMMITTED, 4, 1)
    assert (again.outcome, again.version) == (Outcome.NO_OP, first.version)
    bucket.put(f"{DAY}/late.json", lines(order(4, 9)))
    assert lakehouse.run(ORDERS).rows.read == 1
    assert lakehouse.rows(ORDERS, "order_id", "_source_file", "_batch_seq") == [
        ("o1", f"orders/date=2013-01-01/{ODD}", 1),
        ("o2", f"orders/date=2013-01-01/{ODD}", 1),
        ("o3", "orders/date=2013-01-01/eu/d.json", 1),
        ("o4", "orders/date=2013-01-01/late.json", 2),
    ]
    (refused,) = lakehouse.quarantine(ORDERS)
    assert (refused["source"], refused["position"]) == ("orders/date=2013-01-01/eu/d.json", 2)


def test_an_object_that_spark_cannot_name_is_broken_and_the_others_are_loaded(
    lakehouse: Lakehouse, bucket: Bucket
) -> None:
    for number, name in enumerate(("08:00.json", "a[1].json", "08:00[1].json")):
        bucket.put(f"{DAY}/{name}", lines(order(number, 5)))
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.rows.read) == (Outcome.BAD_INPUT, 2)
    assert "08:00[1].json: Spark reads no object with both a colon and [ in its name" in report.message


def test_the_ledger_knows_each_object_by_its_entity_tag(lakehouse: Lakehouse, bucket: Bucket) -> None:
    bucket.put(f"{DAY}/a.json", lines(order(1, 5)))
    tag = bucket.client.head_object(Bucket=bucket.name, Key=f"{DAY}/a.json")["ETag"].strip('"')
    lakehouse.run(ORDERS)
    ledger = Ledger(lakehouse.paths)
    (event,) = ledger._files.events(ORDERS, event="loaded")
    (state,) = file_states(ledger, ORDERS, event["table_id"])
    assert (state.checksum, state.rows and state.rows.written) == (f"etag:{tag}", 1)


def test_other_content_under_a_loaded_name_is_refused_or_replaces_the_old_content(
    lakehouse: Lakehouse, bucket: Bucket
) -> None:
    bucket.put(f"{DAY}/a.json", lines(order(1, 5), order(2, 5)))
    lakehouse.run(ORDERS)
    bucket.put(f"{DAY}/a.json", lines(order(1, 6)))
    refused = lakehouse.run(ORDERS)
    assert refused.outcome is Outcome.BAD_INPUT
    assert "a.json was loaded before with other content" in refused.message
    assert "bytes, etag:" in refused.message
    assert "sha256" not in refused.message
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    lakehouse.specs(bronze_document(source=source))
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert lakehouse.rows(ORDERS, "order_id", "amount") == [("o1", 6)]


def test_a_broken_object_is_named_and_the_others_are_loaded(lakehouse: Lakehouse, bucket: Bucket) -> None:
    lakehouse.specs(bronze_document(source={**bronze_document()["source"], "files": "*.json*"}))
    bucket.put(f"{DAY}/a.json.gz", gzip.compress(lines(order(1, 5)).encode()))
    bucket.put(f"{DAY}/b.json.gz", gzip.compress(lines(order(2, 5)).encode())[:-9])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "b.json.gz: truncated gzip" in report.message
    assert lakehouse.rows(ORDERS, "order_id") == [("o1",)]


def test_arrays_and_zstd_are_read_from_a_bucket_as_from_a_folder(lakehouse: Lakehouse, bucket: Bucket) -> None:
    lakehouse.specs(bronze_document(source={**bronze_document()["source"], "files": "*.json*"}))
    bucket.put(f"{DAY}/array.json", json.dumps([order(1, 5), order(2, 6)], indent=1))
    bucket.put(f"{DAY}/lines.json.zst", zstandard.compress(lines(order(3, 7)).encode()))
    bucket.put(f"{DAY}/cut.json", json.dumps([order(4, 8)])[:-2])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "cut.json: not a sound JSON array" in report.message
    assert lakehouse.rows(ORDERS, "order_id", "amount") == [("o1", 5), ("o2", 6), ("o3", 7)]


def test_an_object_that_only_spark_finds_broken_is_named_and_the_others_are_loaded(
    lakehouse: Lakehouse, bucket: Bucket
) -> None:
    lakehouse.specs(bronze_document(source={"landing": "orders", "files": "*.parquet", "format": "parquet"}))
    content = io.BytesIO()
    rows = [{name: str(value) for name, value in order(number, number).items()} for number in range(20_000)]
    pq.write_table(pa.Table.from_pylist(rows), content, compression="none")
    sound = content.getvalue()
    bucket.put(f"{DAY}/a.parquet", sound)
    bucket.put(f"{DAY}/b c.parquet", sound[:100] + b"\xff" * 2000 + sound[2100:])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "b c.parquet: Spark cannot read it to its end" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 20_000


@pytest.mark.faults
@pytest.mark.parametrize("fault", [cut, fail_inside], ids=lambda fault: fault.__name__)
def test_a_store_that_fails_while_spark_reads_is_no_defect_of_the_object(
    lakehouse: Lakehouse, bucket: Bucket, monkeypatch: pytest.MonkeyPatch, fault: Fault
) -> None:
    bucket.put(f"{DAY}/a.json", lines(order(1, 5)))
    bucket.put(f"{DAY}/b.json", lines(*(order(number, 6) for number in range(2, 200))))
    with faulty_s3(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
        proxy.on("GET", "/b.json", fault, times=10_000, agent="Hadoop")
        report = lakehouse.run(ORDERS)
        assert proxy.faults_met()
        assert report.outcome is Outcome.NOT_READY
        assert report.files["orders/date=2013-01-01/b.json"].startswith("unreachable: ")
        stuck = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)[1]
        assert (stuck.status, stuck.reason[:3]) == (FileStatus.UNREACHABLE, "s3:")
        assert lakehouse.rows(ORDERS, "order_id") == [("o1",)]
        proxy.calm()
        assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert len(lakehouse.rows(ORDERS, "order_id")) == 199


@pytest.mark.faults
def test_a_store_that_returns_nothing_is_reported_for_each_requested_object(
    lakehouse: Lakehouse, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, name in enumerate("abcd"):
        bucket.put(f"{DAY}/{name}.json", lines(order(number, 5)))
    with faulty_s3(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
        proxy.on("GET", ".json", slow_down, times=10_000)
        report, ledger = lakehouse.run(ORDERS), Ledger(lakehouse.paths)
        assert report.outcome is Outcome.NOT_READY
        of_table = ORDERS, table_id(lakehouse.paths.table(ORDERS))
        asked = file_states(ledger, *of_table)
        assert [state.status for state in asked] == [FileStatus.UNREACHABLE] * 3, "no more are waited for"
        assert all("SlowDown" in state.reason for state in asked), asked
        proxy.calm()
        assert lakehouse.run(ORDERS).rows.read == 4
    assert [(state.status, state.reason) for state in file_states(ledger, *of_table)] == [(FileStatus.LOADED, "")] * 4


@pytest.mark.parametrize("form", ["csv", "parquet", "avro"])
def test_a_source_with_its_own_bucket_has_complete_addresses(lakehouse: Lakehouse, bucket: Bucket, form: str) -> None:
    lakehouse.landing = ""
    feed = f"s3://{bucket.name}/elsewhere"
    lakehouse.specs(bronze_document(source={"landing": feed, "files": f"*.{form}", "format": form}))
    row = {name: str(value) for name, value in order(1, 5).items()}
    content = io.BytesIO()
    if form == "csv":
        content.write(f"{','.join(row)}\n{','.join(row.values())}\n".encode())
    elif form == "parquet":
        pq.write_table(pa.Table.from_pylist([row]), content)
    else:
        fields = [{"name": name, "type": "string"} for name in row]
        fastavro.writer(content, {"type": "record", "name": "Order", "fields": fields}, [row])
    bucket.put(f"elsewhere/date=2013-01-01/a.{form}", content.getvalue())
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    path = f"{feed}/date=2013-01-01/a.{form}"
    assert lakehouse.rows(ORDERS, "order_id", "amount", "_source_file") == [("o1", 5, path)]

"""Bronze from a bucket, on real Delta and a real S3 server: every object once, by its entity tag."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
import zstandard

from embedded.servers.s3 import Bucket, s3_bucket
from millrace.contracts.file_status import FileStatus
from millrace.control.landing.file_states import file_states
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document
from tests.support.lakehouse import Lakehouse, order
from tests.support.storage.faulty_s3 import cut, fail_inside, faulty_s3, slow_down
from tests.support.storage.landing_files import parquet_of

ORDERS = "bronze.orders"
FOLDER = "orders/date=2013-01-01"
DAY = f"landing/{FOLDER}"
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


def test_objects_of_any_name_and_packing_are_loaded_and_broken_ones_are_named(
    lakehouse: Lakehouse, bucket: Bucket
) -> None:
    lakehouse.specs(bronze_document(source={**bronze_document()["source"], "files": "*.json*"}))
    sound = {
        ODD: lines(order(1, 5), order(2, "?")).encode(),
        "eu/d.json": f"{lines(order(3, 7))}no record\n".encode(),
        "08:00.json": lines(order(4, 5)).encode(),
        "a.json.gz": gzip.compress(lines(order(5, 5)).encode()),
        "array.json": json.dumps([order(6, 5), order(7, 6)], indent=1).encode(),
        "lines.json.zst": zstandard.compress(lines(order(8, 7)).encode()),
    }
    broken = {
        "08:00[1].json": lines(order(9, 5)).encode(),
        "b.json.gz": gzip.compress(lines(order(9, 5)).encode())[:-9],
        "cut.json": json.dumps([order(9, 8)])[:-2].encode(),
    }
    for name, content in {**sound, **broken}.items():
        bucket.put(f"{DAY}/{name}", content)

    report = lakehouse.run(ORDERS)

    assert (report.outcome, report.rows.read, report.rows.quarantined) == (Outcome.BAD_INPUT, 9, 1)
    assert "3 of 9 files cannot be loaded" in report.message
    assert "08:00[1].json: Spark reads no object with both a colon and [ in its name" in report.message
    assert "b.json.gz: truncated gzip" in report.message
    assert "cut.json: not a sound JSON array" in report.message
    names = ["", ODD, ODD, "eu/d.json", "08:00.json", "a.json.gz", "array.json", "array.json", "lines.json.zst"]
    assert lakehouse.rows(ORDERS, "order_id", "_source_file") == [
        (f"o{number}", f"{FOLDER}/{name}") for number, name in enumerate(names) if name
    ]
    (refused,) = lakehouse.quarantine(ORDERS)
    assert (refused["source"], refused["position"]) == (f"{FOLDER}/eu/d.json", 2)


def test_an_object_is_loaded_once_by_its_entity_tag_and_other_content_is_refused_or_replaces_it(
    lakehouse: Lakehouse, bucket: Bucket
) -> None:
    """The source has its own bucket, and thus complete addresses, also where only Spark finds an object broken."""
    lakehouse.landing = ""
    feed, folder = f"s3://{bucket.name}/elsewhere", "elsewhere/date=2013-01-01"
    source = {"landing": feed, "files": "*.parquet", "format": "parquet"}
    lakehouse.specs(bronze_document(source=source))
    sound = parquet_of([{"order_id": f"o{number}", "amount": number} for number in range(5000)])
    bucket.put(f"{folder}/a.parquet", sound)
    bucket.put(f"{folder}/b c.parquet", sound[:100] + b"\xff" * 2000 + sound[2100:])
    tag = bucket.client.head_object(Bucket=bucket.name, Key=f"{folder}/a.parquet")["ETag"].strip('"')
    first = lakehouse.run(ORDERS)
    assert first.outcome is Outcome.BAD_INPUT
    assert "b c.parquet: it cannot be read to its end (" in first.message
    loaded = lakehouse.rows(ORDERS, "order_id", "amount", "_source_file")
    assert len(loaded) == 5000
    assert loaded[0] == ("o0", 0, f"{feed}/date=2013-01-01/a.parquet")
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{folder}/b c.parquet")
    again = lakehouse.run(ORDERS)
    assert (again.outcome, again.version) == (Outcome.NO_OP, first.version)
    state, *_ = file_states(Ledger(lakehouse.paths), ORDERS, first.table_id)
    assert (state.checksum, state.rows and state.rows.written) == (f"etag:{tag}", 5000)

    bucket.put(f"{folder}/a.parquet", parquet_of([{"order_id": "o1", "amount": 6}]))
    refused = lakehouse.run(ORDERS)
    assert refused.outcome is Outcome.BAD_INPUT
    assert "a.parquet was loaded before with other content" in refused.message
    assert "bytes, etag:" in refused.message
    assert "sha256" not in refused.message
    lakehouse.specs(bronze_document(source={**source, "on_changed_file": "replace"}))
    assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert lakehouse.rows(ORDERS, "order_id", "amount") == [("o1", 6)]


@pytest.mark.faults
def test_a_store_that_fails_while_spark_reads_is_no_defect_of_the_object(
    lakehouse: Lakehouse, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.put(f"{DAY}/a.json", lines(order(1, 5)))
    stuck = {"b.json": cut, "c.json": fail_inside}
    for name in stuck:
        bucket.put(f"{DAY}/{name}", lines(*(order(number, 6) for number in range(2, 200))))
    with faulty_s3(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
        for name, fault in stuck.items():
            proxy.on("GET", f"/{name}", fault, times=10_000, agent="Hadoop")
        report = lakehouse.run(ORDERS)
        assert proxy.faults_met()
        assert report.outcome is Outcome.NOT_READY
        assert all(report.files[f"{FOLDER}/{name}"].startswith("unreachable: ") for name in stuck), report.files
        states = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)[1:]
        assert [(state.status, state.reason[:3]) for state in states] == [(FileStatus.UNREACHABLE, "s3:")] * 2
        assert lakehouse.rows(ORDERS, "order_id") == [("o1",)]
        proxy.calm()
        assert lakehouse.run(ORDERS).outcome is Outcome.COMMITTED
    assert len(lakehouse.rows(ORDERS, "order_id")) == 397


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

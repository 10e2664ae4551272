"""Landing files in a bucket: which ones are listed, what identifies each, and the errors; with a real S3 server."""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.inspection import inspect
from include.control.landing.landing import Landing, LandingFile, is_as_listed, is_unchanged, landing_of
from include.control.log.batch import FileFact
from include.control.storage import s3_access
from include.errors import NotReadyError, StorageError
from include.inference.first_spec import guessed_source
from tests.support.deliveries import orders_spec_of
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day
from tests.support.listing import list_files
from tests.support.storage.faulty_s3 import Fault, cut, fail_inside, faulty_s3, reset, slow_down

DAY = "landing/orders/date=2013-01-01"


def sound_files() -> dict[str, bytes]:
    """Return a file of each format by name, each larger than the read-ahead."""
    rows = pa.table({name: [str(number * 7919) for number in range(60_000)] for name in bronze_spec().columns})
    parquet, avro = io.BytesIO(), io.BytesIO()
    pq.write_table(rows, parquet, compression="none")
    fields = [{"name": name, "type": "string"} for name in rows.column_names]
    fastavro.writer(avro, {"type": "record", "name": "order", "fields": fields}, rows.to_pylist())
    csv = "\n".join([",".join(rows.column_names), *(f"{number},2,3,4,5" for number in range(60_000))])
    lines = "".join(f'{{"order_id": "{number * 7919}"}}\n' for number in range(60_000))
    return {
        "a.json.gz": gzip.compress(lines.encode()),
        "a.csv": csv.encode(),
        "a.parquet": parquet.getvalue(),
        "a.avro": avro.getvalue(),
    }


SOUND = sound_files()


@pytest.fixture(scope="module")
def store() -> Iterator[Bucket]:
    with s3_bucket("first") as bucket:
        yield bucket


@pytest.fixture
def bucket(store: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """A bucket of the test's own, which the environment variables name."""
    bucket = Bucket(store.endpoint, f"lake-{uuid4().hex[:8]}")
    bucket.client.create_bucket(Bucket=bucket.name)
    for name, value in bucket.environment.items():
        monkeypatch.setenv(name, value)
    return bucket


@pytest.fixture
def landing(bucket: Bucket) -> Landing:
    return landing_of("orders", f"s3://{bucket.name}/landing")


def spec_of(form: str = "json", **source: object) -> BronzeSpec:
    return orders_spec_of(form, **({"landing": "orders"} | source))


def listed(landing: Landing, spec: BronzeSpec | None = None) -> tuple[FileFact, ...]:
    return list_files(spec or spec_of(), landing, day())


def test_objects_of_several_pages_are_all_listed_with_size_time_and_tag(bucket: Bucket, landing: Landing) -> None:
    for number in range(1003):
        bucket.put(f"{DAY}/{number:04d}.json", "{}")
    found = listed(landing)
    assert [file.path for file in found] == [f"orders/date=2013-01-01/{number:04d}.json" for number in range(1003)]
    assert {(file.size, file.checksum) for file in found} == {(2, "etag:99914b932bd37a50b983c5e7c90ae93b")}
    assert min(file.mtime_ns for file in found) > 1_500_000_000 * 10**9


def test_hidden_unfinished_and_other_files_and_other_days_are_not_listed(bucket: Bucket, landing: Landing) -> None:
    wanted = ["a.json", "eu/b.json"]
    for name in (*wanted, ".c.json", "_temporary/d.json", "e.json.tmp", "f.csv", ""):
        bucket.put(f"{DAY}/{name}", "{}")
    bucket.put(f"{DAY}-corrected/g.json", "{}")
    assert [file.path.partition("01-01/")[2] for file in listed(landing, spec_of(files="*.json"))] == wanted
    assert [PurePosixPath(file.path).name for file in listed(landing, spec_of(files="eu/*.json"))] == ["b.json"]


def test_a_prefix_without_objects_is_not_ready_and_a_folder_marker_is_an_empty_delivery(
    bucket: Bucket, landing: Landing
) -> None:
    with pytest.raises(NotReadyError, match=rf"no landing folder s3://{bucket.name}/{DAY}"):
        listed(landing)
    bucket.put(f"{DAY}/", b"")
    assert listed(landing) == ()


def test_a_source_may_have_its_own_bucket(bucket: Bucket) -> None:
    bucket.put("elsewhere/date=2013-01-01/a.json", "{}")
    feed = f"s3://{bucket.name}/elsewhere"
    (file,) = listed(landing_of(feed, "/data/landing"), spec_of(landing=feed))
    assert file.path == f"{feed}/date=2013-01-01/a.json"


def test_a_new_tag_means_new_content_and_a_new_time_does_not(bucket: Bucket, landing: Landing) -> None:
    bucket.put(f"{DAY}/a.json", '{"a": 1}')
    (first,) = listed(landing)
    known = {first.path: replace(first, mtime_ns=0)}
    assert is_unchanged(first, known)
    assert is_as_listed(first, landing)
    bucket.put(f"{DAY}/a.json", '{"a": 2}')
    (second,) = listed(landing)
    assert second.size == first.size
    assert not is_unchanged(second, known)
    assert not is_as_listed(first, landing)
    bucket.client.delete_object(Bucket=bucket.name, Key=f"{DAY}/a.json")
    assert not is_as_listed(second, landing)
    assert inspect(second, landing, spec_of()).defect == "it went away while it was read"


def test_the_tag_is_the_checksum_after_an_inspection(bucket: Bucket, landing: Landing) -> None:
    bucket.put(f"{DAY}/a.json", '{"a": 1}')
    (file,) = listed(landing)
    assert inspect(file, landing, spec_of()) == file


def test_the_content_is_read_as_it_is_stored(bucket: Bucket, landing: Landing) -> None:
    bucket.put(f"{DAY}/a.json.gz", b"\x1f\x8b no gzip")
    (file,) = listed(landing)
    with LandingFile(landing, file.path).open() as content:
        assert content.read() == b"\x1f\x8b no gzip"
    assert "not a sound gzip file" in inspect(file, landing, spec_of()).defect


@pytest.mark.parametrize("fault", [cut, reset, slow_down, fail_inside])
@pytest.mark.parametrize("name", ["a.json.gz", "a.csv", "a.parquet", "a.avro"])
def test_an_error_of_the_store_within_a_file_is_no_defect_of_the_file(
    bucket: Bucket, landing: Landing, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault
) -> None:
    monkeypatch.setattr("smart_open.s3.time.sleep", lambda _: None)
    monkeypatch.setattr(s3_access, "_CLIENT_CONFIG", {"retries": {"max_attempts": 1}})
    spec = spec_of(name.split(".")[1], files="*")
    bucket.put(f"{DAY}/{name}", SOUND[name])
    (file,) = listed(landing)
    with faulty_s3(bucket.endpoint) as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", proxy.endpoint)
        proxy.on("GET", name, fault, times=1000)
        with pytest.raises(NotReadyError, match=rf"^s3://{bucket.name}/\S+{name}: ") as raised:
            inspect(file, landing, spec)
        assert proxy.faults_met() > 0
        assert "sound" not in str(raised.value)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", bucket.endpoint)
    assert inspect(file, landing, spec).defect == ""


def test_a_spec_is_guessed_from_a_bucket_too(bucket: Bucket, landing: Landing) -> None:
    bucket.put(f"{DAY}/a.csv", "id;at\n1;2013-01-01T00:00:00Z\n")
    with guessed_source(landing, "orders") as source:
        text = source.bronze_text("bronze.orders")
    assert "landing: orders, files: '*.csv', format: csv, delimiter: ;" in text
    assert "at: {type: timestamp}" in text


def test_a_store_that_does_not_answer_is_tried_again_later(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setattr(s3_access, "_CLIENT_CONFIG", {"retries": {"max_attempts": 1}})
    with pytest.raises(NotReadyError, match=r"(?s)^s3://lake-\w+/landing/\S+: no answer .* AWS_ENDPOINT"):
        listed(landing)


def test_a_missing_bucket_is_named_with_the_way_out(landing: Landing) -> None:
    with pytest.raises(StorageError, match=r"^s3://nowhere/orders/date=2013-01-01 cannot be read .*NoSuchBucket"):
        listed(landing_of("orders", "s3://nowhere"))


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("AWS_PROFILE", "nope", r"profile \(nope\) could not be found"),
        ("AWS_SECRET_ACCESS_KEY", "", "Partial credentials"),
        ("AWS_ENDPOINT_URL_S3", "127.0.0.1:9", "Invalid endpoint"),
    ],
)
def test_a_wrong_setting_is_reported_in_one_line(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    if value:
        monkeypatch.setenv(name, value)
    else:
        monkeypatch.delenv(name)
    with pytest.raises(StorageError, match=rf"(?s)^s3://lake-\w+/\S+ cannot be read \(.*{message}.*AWS_PROFILE\.$"):
        listed(landing)


def test_the_message_without_credentials_names_the_variables(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(StorageError, match=r"no credentials\nGive this process AWS_ACCESS_KEY_ID"):
        listed(landing)

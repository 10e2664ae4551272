"""Landing files in a bucket: which ones are listed, what identifies each, and the errors; with a real S3 server."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import PurePosixPath
from uuid import uuid4

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.inspection import inspect
from millrace.control.landing.landing import Landing, is_as_listed, is_unchanged, landing_of
from millrace.control.log.batch import FileFact
from millrace.control.storage import s3_access
from millrace.errors import NotReadyError, StorageError
from tests.support.deliveries import orders_spec_of
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day
from tests.support.listing import list_files
from tests.support.storage.faulty_s3 import Fault, FaultyS3, cut, reset, slow_down

DAY = "orders/date=2013-01-01"

Put = Callable[[str, str | bytes], None]


def sound_file(name: str) -> bytes:
    """Return a file of the format of its name, larger than the read-ahead."""
    if name.endswith(".json.gz"):
        return gzip.compress("".join(f'{{"order_id": "{number * 7919}"}}\n' for number in range(40_000)).encode())
    columns, stored = list(bronze_spec().columns), io.BytesIO()
    if name.endswith(".csv"):
        return "\n".join([",".join(columns), *(f"{number},2,3,4,5" for number in range(40_000))]).encode()
    rows = pa.table({column: [str(number * 7919) for number in range(10_000)] for column in columns})
    if name.endswith(".parquet"):
        pq.write_table(rows, stored, compression="none")
    else:
        fields = [{"name": column, "type": "string"} for column in columns]
        fastavro.writer(stored, {"type": "record", "name": "order", "fields": fields}, rows.to_pylist())
    return stored.getvalue()


@pytest.fixture
def landing(bucket: Bucket) -> Landing:
    """A landing root of the test's own."""
    return landing_of("orders", f"s3://{bucket.name}/{uuid4().hex}")


@pytest.fixture
def put(bucket: Bucket, landing: Landing) -> Put:
    """Deliver a file of the first day."""
    folder = landing.location(DAY).removeprefix(f"s3://{bucket.name}/")
    return lambda name, content: bucket.put(f"{folder}{name}", content)


def spec_of(form: str = "json", **source: object) -> BronzeSpec:
    return orders_spec_of(form, **({"landing": "orders"} | source))


def listed(landing: Landing, spec: BronzeSpec | None = None) -> tuple[FileFact, ...]:
    return list_files(spec or spec_of(), landing, day())


def test_objects_of_several_pages_are_listed_with_size_time_and_tag_but_no_unfinished_ones_and_no_other_days(
    put: Put, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = s3_access.s3_client()
    pages = client.get_paginator("list_objects_v2")
    monkeypatch.setattr(pages, "paginate", partial(pages.paginate, PaginationConfig={"PageSize": 2}))
    monkeypatch.setattr(client, "get_paginator", {"list_objects_v2": pages}.__getitem__)
    wanted = ["a.json", "b.json", "eu/c.json", "eu/d.json", "z.json"]
    for name in (*wanted, ".c.json", "_temporary/d.json", "e.json.tmp", "f.csv", ""):
        put(f"/{name}", "{}")
    put("-corrected/g.json", "{}")
    found = listed(landing, spec_of(files="*.json"))
    assert [file.path for file in found] == [f"orders/date=2013-01-01/{name}" for name in wanted]
    assert {(file.size, file.checksum) for file in found} == {(2, "etag:99914b932bd37a50b983c5e7c90ae93b")}
    assert min(file.mtime_ns for file in found) > 1_500_000_000 * 10**9
    in_folder = listed(landing, spec_of(files="eu/*.json"))
    assert [PurePosixPath(file.path).name for file in in_folder] == ["c.json", "d.json"]


def test_a_prefix_without_objects_is_not_ready_and_a_folder_marker_is_an_empty_delivery(
    put: Put, landing: Landing
) -> None:
    with pytest.raises(NotReadyError, match=f"no landing folder {landing.location(DAY)}"):
        listed(landing)
    put("/", b"")
    assert listed(landing) == ()


def test_a_new_tag_means_new_content_and_a_new_time_does_not(bucket: Bucket, put: Put, landing: Landing) -> None:
    put("/a.json", '{"a": 1}')
    (first,) = listed(landing)
    known = {first.path: replace(first, mtime_ns=0)}
    assert is_unchanged(first, known)
    assert is_as_listed(first, landing)
    put("/a.json", '{"a": 2}')
    (second,) = listed(landing)
    assert second.size == first.size
    assert not is_unchanged(second, known)
    assert not is_as_listed(first, landing)
    key = landing.location(second.path).removeprefix(f"s3://{bucket.name}/")
    bucket.client.delete_object(Bucket=bucket.name, Key=key)
    assert not is_as_listed(second, landing)
    assert inspect(second, landing, spec_of()).defect == "it went away while it was read"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        *(("a.json.gz", fault) for fault in (cut, reset, slow_down)),
        *((name, cut) for name in ("a.csv", "a.parquet", "a.avro")),
    ],
)
def test_an_error_of_the_store_within_a_file_is_no_defect_of_the_file(
    put: Put, landing: Landing, faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch, name: str, fault: Fault
) -> None:
    monkeypatch.setattr("smart_open.s3.time.sleep", lambda _: None)
    monkeypatch.setattr(s3_access, "_CLIENT_CONFIG", {"retries": {"max_attempts": 1}})
    spec = spec_of(name.split(".")[1], files="*")
    content = sound_file(name)
    assert len(content) > 128 * 1024
    put(f"/{name}", content)
    (file,) = listed(landing)
    met = faulty.faults_met()
    faulty.on("GET", name, fault, times=1000)
    with monkeypatch.context() as proxied:
        proxied.setenv("AWS_ENDPOINT_URL_S3", faulty.endpoint)
        with pytest.raises(NotReadyError, match=rf"^{landing.location(file.path)}: ") as raised:
            inspect(file, landing, spec)
    assert faulty.faults_met() > met
    assert "sound" not in str(raised.value)
    found = inspect(file, landing, spec)
    assert (found.defect, found.checksum) == ("", file.checksum), "the tag is its checksum"


def test_a_missing_bucket_is_named_with_the_way_out(landing: Landing) -> None:
    with pytest.raises(StorageError, match=r"^s3://nowhere/orders/date=2013-01-01 cannot be read .*NoSuchBucket"):
        listed(landing_of("orders", "s3://nowhere"))


@pytest.mark.parametrize(
    ("variables", "error", "message"),
    [
        ({"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9"}, NotReadyError, r": no answer .* AWS_ENDPOINT"),
        ({"AWS_PROFILE": "nope"}, StorageError, r" cannot be read \(.*profile \(nope\) could not be .*AWS_PROFILE\.$"),
        ({"AWS_ENDPOINT_URL_S3": "127.0.0.1:9"}, StorageError, r" cannot be read \(.*Invalid endpoint.*AWS_PROFILE\.$"),
        (
            {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_EC2_METADATA_DISABLED": "true"},
            StorageError,
            r": no credentials\nGive this process AWS_ACCESS_KEY_ID",
        ),
    ],
    ids=["no answer", "no profile", "no endpoint", "no credentials"],
)
def test_a_wrong_setting_is_reported_with_the_way_out(
    landing: Landing, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], error: type[Exception], message: str
) -> None:
    for name, value in variables.items():
        if value:
            monkeypatch.setenv(name, value)
        else:
            monkeypatch.delenv(name)
    monkeypatch.setattr(s3_access, "_CLIENT_CONFIG", {"retries": {"max_attempts": 1}})
    with pytest.raises(error, match=rf"(?s)^s3://lake/\w+/{DAY}{message}"):
        listed(landing)


def test_an_object_is_replaced_or_deleted_only_as_it_was_listed(bucket: Bucket, put: Put, landing: Landing) -> None:
    put("/a.json", '{"a": 1}')
    (before,) = listed(landing)
    announced: list[FileFact] = []

    landing.replace(before, io.BytesIO(b"{}"), announced.append)

    (after,) = listed(landing)
    assert [replace(each, mtime_ns=after.mtime_ns) for each in announced] == [after]
    with landing.open(after.path) as content:
        assert content.read() == b"{}"
    with pytest.raises(NotReadyError, match=r"a\.json has changed"):
        landing.replace(before, io.BytesIO(b"[]"), announced.append)
    with pytest.raises(NotReadyError, match=r"a\.json has changed"):
        landing.delete(before, announced.clear)
    assert (listed(landing), bool(announced)) == ((after,), True)
    landing.delete(after, announced.clear)
    assert (landing.file_at(after.path), announced) == (None, [])

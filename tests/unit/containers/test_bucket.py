"""The bucket of a new installation, and files that go into it and come out of it, in a real S3 server."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.bucket import prepare_bucket
from containers.transfer import give_out, take_in
from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.lake_path import S3Path
from include.errors import StorageError
from tests.support.storage.faulty_s3 import faulty_s3

FILES = {"planes/date=2013-01-01/planes.csv": b"tailnum\n", "weather/part 1.csv": bytes(range(256)), "empty": b""}
LANDING = S3Path("s3://transfer/landing")


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with s3_bucket("transfer") as bucket:
        yield bucket


@pytest.fixture(autouse=True)
def reach(server: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_the_bucket_is_made_once_and_nothing_is_left_in_it(
    server: Bucket, monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", region)
    bucket = f"lake-{region}"
    for _ in range(2):
        prepare_bucket(S3Path(f"s3://{bucket}/tables"))
    assert bucket in {found["Name"] for found in server.client.list_buckets()["Buckets"]}
    assert server.client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0


def test_a_store_that_ignores_conditional_puts_is_refused_before_anything_starts(
    server: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with faulty_s3(server.endpoint) as proxy:
        for name, value in Bucket(proxy.endpoint, "lake").environment.items():
            monkeypatch.setenv(name, value)
        server.client.create_bucket(Bucket="lake")
        proxy.ignore("If-None-Match")
        with pytest.raises(StorageError, match="has no conditional puts"):
            prepare_bucket(S3Path("s3://lake/refused"))


def test_no_name_leads_out_of_the_place(server: Bucket) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/../../tables/x"))
    stream.seek(0)
    with pytest.raises(ValueError, match="leads out of s3://transfer/landing"):
        take_in(LANDING, stream)
    assert server.client.list_objects_v2(Bucket="transfer")["KeyCount"] == 0


def test_a_folder_comes_out_of_the_store_as_it_went_in(server: Bucket, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    packed, out = io.BytesIO(), io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        tar.add(tmp_path, ".")
    packed.seek(0)
    server.put("landing-of-others/not-ours", b"x")
    assert take_in(LANDING, packed) == give_out(LANDING, out) == len(FILES)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == FILES  # type: ignore[union-attr]

"""The bucket of a new installation, in a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from containers.bucket import prepare_bucket
from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.lake_path import S3Path
from include.errors import StorageError
from tests.support.storage.faulty_s3 import faulty_s3


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with s3_bucket("other") as bucket:
        yield bucket


def reach(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in Bucket(endpoint, "lake").environment.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize("region", ["us-east-1", "eu-central-1"])
def test_the_bucket_is_made_once_and_nothing_is_left_in_it(
    server: Bucket, monkeypatch: pytest.MonkeyPatch, region: str
) -> None:
    reach(server.endpoint, monkeypatch)
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
        reach(proxy.endpoint, monkeypatch)
        server.client.create_bucket(Bucket="lake")
        proxy.ignore("If-None-Match")
        with pytest.raises(StorageError, match="has no conditional puts"):
            prepare_bucket(S3Path("s3://lake/refused"))

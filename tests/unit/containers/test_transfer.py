"""Files go into the store and come out of it with their bytes, through a tar."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from containers.transfer import give_out, take_in
from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.lake_path import S3Path

FILES = {"planes/date=2013-01-01/planes.csv": b"tailnum\n", "weather/part 1.csv": bytes(range(256)), "empty": b""}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bucket]:
    with s3_bucket("transfer") as running:
        for name, value in running.environment.items():
            monkeypatch.setenv(name, value)
        yield running


def packed(folder: Path) -> io.BytesIO:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.add(folder, ".")
    stream.seek(0)
    return stream


def test_a_folder_comes_out_of_the_store_as_it_went_in(bucket: Bucket, tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    bucket.put("landing-of-others/not-ours", b"x")
    assert take_in(S3Path("s3://transfer/landing"), packed(tmp_path)) == len(FILES)
    out = io.BytesIO()
    assert give_out(S3Path("s3://transfer/landing"), out) == len(FILES)
    out.seek(0)
    with tarfile.open(fileobj=out) as tar:
        assert {member.name: tar.extractfile(member).read() for member in tar} == FILES  # type: ignore[union-attr]


def test_no_name_leads_out_of_the_place(bucket: Bucket) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a/../../tables/x"))
    stream.seek(0)
    with pytest.raises(ValueError, match="leads out of s3://transfer/landing"):
        take_in(S3Path("s3://transfer/landing"), stream)
    assert bucket.client.list_objects_v2(Bucket="transfer")["KeyCount"] == 0

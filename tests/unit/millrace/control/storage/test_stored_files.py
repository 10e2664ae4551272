"""The files below a folder of a lakehouse, on disk and in a bucket."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.storage.stored_files import files_below

FILES = {"a.parquet": 3, "p=x%20y/b.parquet": 5, "_delta_log/0.json": 0}


def test_a_folder_and_a_bucket_list_the_same_files_without_marks_of_folders(
    tmp_path: Path, proxied_bucket: Bucket
) -> None:
    place = S3Path(f"s3://{proxied_bucket.name}/{uuid4().hex}")
    for name, size in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * size)
        proxied_bucket.put(f"{place.key}/{name}", "x" * size)
    (tmp_path / "p=empty").mkdir()
    proxied_bucket.put(f"{place.key}/p=empty/", "")
    for folder in (tmp_path, place):
        assert {file.path: file.size for file in files_below(folder)} == FILES
        assert all(file.modified > 1_700_000_000 for file in files_below(folder))
    assert list(files_below(tmp_path / "none")) == list(files_below(place / "none")) == []

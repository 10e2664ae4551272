"""Copy files into the store, or out of it, as a tar: for a machine that does not reach the store.

    tar --create --directory demo/data/landing . | docker compose run --rm --no-TTY --entrypoint python \\
        lakehouse -m containers.transfer in s3://lake/landing
    docker compose run --rm --no-TTY --entrypoint python lakehouse -m containers.transfer out s3://lake/tables > all.tar
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import IO, Any, cast

from millrace.contracts.lake_path import S3Path
from millrace.control.storage.s3_access import s3_client


def take_in(place: S3Path, stream: IO[bytes]) -> int:
    """Copy each file of a tar to an object below `place`; return their number.

    Raises:
        ValueError: the tar has a name that leads out of `place`.
    """
    number = 0
    with tarfile.open(fileobj=stream, mode="r|") as tar:
        for member in tar:
            if not member.isfile():
                continue
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts:
                raise ValueError(
                    f"{member.name!r} leads out of {place}\nPack the files with names relative to a folder."
                )
            with tempfile.TemporaryFile() as content:
                # A tar that is read as a stream cannot go back, which a second try of an upload must.
                shutil.copyfileobj(cast(IO[bytes], tar.extractfile(member)), content)
                content.seek(0)
                s3_client().upload_fileobj(content, place.bucket, (place / name).key)
            number += 1
    return number


def give_out(place: S3Path, stream: IO[bytes]) -> int:
    """Write all objects below `place` to a tar; return their number."""
    number = 0
    with tarfile.open(fileobj=stream, mode="w|") as tar:
        for found in _objects(place):
            info = tarfile.TarInfo(found["Key"].removeprefix(f"{place.key}/"))
            info.size, info.mtime = found["Size"], int(found["LastModified"].timestamp())
            tar.addfile(info, s3_client().get_object(Bucket=place.bucket, Key=found["Key"])["Body"])
            number += 1
    return number


def _objects(place: S3Path) -> Iterator[dict[str, Any]]:
    pages = s3_client().get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=f"{place.key}/")
    yield from (found for page in pages for found in page.get("Contents", ()) if not found["Key"].endswith("/"))


def main() -> None:
    """The command line: `in PLACE` or `out PLACE`."""
    way, place = sys.argv[1:]
    copied = {
        "in": lambda: take_in(S3Path(place), sys.stdin.buffer),
        "out": lambda: give_out(S3Path(place), sys.stdout.buffer),
    }
    sys.stderr.write(f"{copied[way]()} files\n")


if __name__ == "__main__":
    main()

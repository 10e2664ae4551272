"""Where a race is run: a folder on local disk, or a bucket in a real S3 server on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from uuid import uuid4

from embedded.servers.s3 import CREDENTIALS, Bucket, s3_bucket, start_moto, start_server
from include.control.storage.json_lines import json_lines
from include.errors import MillraceError
from races.versions import CONDITIONAL_PUT, HARD_LINK

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_TEN_MINUTES = 600


class PlaceName(StrEnum):
    """The places that there are."""

    DISK = "disk"
    MOTO = "moto"
    VERSITYGW = "versitygw"


class NoSuchServerError(MillraceError):
    """Raised when a server is not to be had on this machine; the message says what is missing."""


@dataclass(frozen=True)
class Place:
    """One place.

    Attributes:
        name: which.
        store: class name of Millrace's own log store for it.
        stock: those of Delta that are raced beside it, to see that the race catches a loss.
        folder: the folder that everything is in, on disk.
        bucket: the bucket that everything is in, on S3.
    """

    name: PlaceName
    store: str
    stock: tuple[str, ...]
    folder: Path = Path()
    bucket: Bucket | None = None
    _used: set[str] = field(default_factory=set)

    @property
    def settings(self) -> Mapping[str, str]:
        """Hadoop's settings."""
        return self.bucket.hadoop_settings if self.bucket else {}

    @property
    def environment(self) -> Mapping[str, str]:
        """What a writer has in its environment."""
        return self.bucket.environment if self.bucket else {}

    @property
    def delta_rs_options(self) -> dict[str, str]:
        """What delta-rs needs to find it."""
        return {**self.bucket.environment, "AWS_ALLOW_HTTP": "true"} if self.bucket else {}

    def new_folder(self) -> str:
        """A folder of its own, as Spark and delta-rs name it."""
        if self.bucket:
            return f"s3a://{self.bucket.name}/{uuid4().hex}"
        made = self.folder / uuid4().hex
        made.mkdir(parents=True)
        return str(made)

    def log_of(self, table: str) -> dict[int, str]:
        """version -> what its commit holds."""
        return {int(name.removesuffix(".json")): text for name, text in self._files(f"{table}/_delta_log")}

    def _files(self, folder: str) -> Iterator[tuple[str, str]]:
        if self.bucket is None:
            yield from ((path.name, path.read_text()) for path in Path(folder).glob("*.json"))
            return
        prefix = folder.removeprefix(f"s3a://{self.bucket.name}/") + "/"
        pages = self.bucket.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.name, Prefix=prefix)
        keys = [found["Key"] for page in pages for found in page.get("Contents", [])]
        for key in keys:
            name = key.removeprefix(prefix)
            if name.endswith(".json") and "/" not in name:
                body = self.bucket.client.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()
                yield name, body.decode()


def tokens_of(log: Mapping[int, str]) -> list[str]:
    """The tokens that the commits of a log carry, each as often as it is there."""
    actions = (line.value for text in log.values() for line in json_lines(text))
    infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    return [info["userMetadata"] for info in infos if "userMetadata" in info]


@contextmanager
def place(name: PlaceName, folder: Path) -> Iterator[Place]:
    """The place, for a while.

    Args:
        name: which.
        folder: for what it keeps on disk; a server that is built stays there for the next time.

    Raises:
        NoSuchServerError: its server is not to be had.
    """
    if name is PlaceName.DISK:
        yield Place(name, HARD_LINK, ("io.delta.storage.LocalLogStore",), folder / "disk")
        return
    start = start_moto
    if name is PlaceName.VERSITYGW:
        program = _versitygw(folder / "bin")
        objects = folder / "objects" / uuid4().hex
        objects.mkdir(parents=True)

        def start(port: int) -> subprocess.Popen[bytes]:
            keys = {"ROOT_ACCESS_KEY": "AWS_ACCESS_KEY_ID", "ROOT_SECRET_KEY": "AWS_SECRET_ACCESS_KEY"}
            argv = [str(program), "--port", f"127.0.0.1:{port}", "posix", str(objects)]
            return start_server(argv, **{own: CREDENTIALS[key] for own, key in keys.items()})

    with s3_bucket(f"race-{uuid4().hex[:12]}", start) as bucket:
        yield Place(name, CONDITIONAL_PUT, ("io.delta.storage.S3SingleDriverLogStore",), bucket=bucket)


def _versitygw(folder: Path) -> Path:
    """The server's program, built from its Go module unless it is there."""
    program = folder / "versitygw"
    if not program.is_file():
        go = shutil.which("go")
        if go is None:
            raise NoSuchServerError("versitygw is built from its Go module, and there is no Go on this machine")
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(folder.resolve())}
        subprocess.run([go, "install", VERSITYGW], env=environment, check=True, timeout=_TEN_MINUTES)
    return program

"""The place of a race: a folder on local disk, or a bucket in an S3 server on loopback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import uuid4

from embedded.servers.s3 import CREDENTIALS, Bucket, s3_bucket, start_moto, start_server
from millrace.control.storage.json_lines import json_lines
from millrace.errors import MillraceError
from races.versions import CONDITIONAL_PUT, HARD_LINK

VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0"
_TEN_MINUTES = 600


class PlaceName(StrEnum):
    """The names of the places."""

    DISK = "disk"
    MOTO = "moto"
    VERSITYGW = "versitygw"


class NoSuchServerError(MillraceError):
    """Raised when this machine cannot run a server; the message says what is missing."""


@dataclass(frozen=True)
class Place:
    """One place.

    Attributes:
        name: its name.
        store: class name of Millrace's own log store for the place.
        stock: class names of Delta's log stores, to check that the race detects losses.
        folder: the folder of all files, on disk.
        bucket: the bucket of all objects, on S3.
    """

    name: PlaceName
    store: str
    stock: tuple[str, ...]
    folder: Path = Path()
    bucket: Bucket | None = None

    @property
    def settings(self) -> Mapping[str, str]:
        """The Hadoop settings of a writer."""
        return self.bucket.hadoop_settings if self.bucket else {}

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables of a writer."""
        return self.bucket.environment if self.bucket else {}

    @property
    def delta_rs_options(self) -> dict[str, str]:
        """The storage options of delta-rs."""
        return {**self.bucket.environment, "AWS_ALLOW_HTTP": "true"} if self.bucket else {}

    def new_folder(self) -> str:
        """Return the path of a new folder, for Spark and delta-rs."""
        if self.bucket:
            return f"s3a://{self.bucket.name}/{uuid4().hex}"
        folder = self.folder / uuid4().hex
        folder.mkdir(parents=True)
        return str(folder)

    def log_of(self, table: str) -> dict[int, str]:
        """Return version -> text of its commit."""
        return {int(name.removesuffix(".json")): text for name, text in self._files(f"{table}/_delta_log")}

    def _files(self, folder: str) -> Iterator[tuple[str, str]]:
        if self.bucket is None:
            yield from ((path.name, path.read_text()) for path in Path(folder).glob("*.json"))
            return
        prefix = folder.removeprefix(f"s3a://{self.bucket.name}/") + "/"
        pages = self.bucket.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket.name, Prefix=prefix)
        keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
        for key in keys:
            name = key.removeprefix(prefix)
            if name.endswith(".json") and "/" not in name:
                body = self.bucket.client.get_object(Bucket=self.bucket.name, Key=key)["Body"].read()
                yield name, body.decode()


def tokens_of(log: Mapping[int, str]) -> list[str]:
    """Return the tokens in the commits of a log, each as often as it occurs."""
    actions = (line.value for text in log.values() for line in json_lines(text))
    infos = (action["commitInfo"] for action in actions if "commitInfo" in action)
    return [info["userMetadata"] for info in infos if "userMetadata" in info]


@contextmanager
def place(name: PlaceName, folder: Path) -> Iterator[Place]:
    """Provide a place within the block.

    Args:
        name: its name.
        folder: the folder for its files; a server that is built stays there.

    Raises:
        NoSuchServerError: this machine cannot run its server.
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
    """Return the server's program; build it from its Go module if it does not exist."""
    program = folder / "versitygw"
    if not program.is_file():
        go = shutil.which("go")
        if go is None:
            raise NoSuchServerError("versitygw is built from its Go module, and there is no Go on this machine")
        folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "GOBIN": str(folder.resolve())}
        subprocess.run([go, "install", VERSITYGW], env=environment, check=True, timeout=_TEN_MINUTES)
    return program

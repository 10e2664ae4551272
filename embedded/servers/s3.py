"""A bucket in an S3 server on loopback, for tests and races."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config

from embedded.home import free_port

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
"""The environment of every client of the server."""

StartServer = Callable[[int], "subprocess.Popen[bytes]"]
"""Start an S3 server at a port that accepts `CREDENTIALS`."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, and the URL of its server."""

    endpoint: str
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """The environment for clients of the bucket."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.endpoint}

    @property
    def hadoop_settings(self) -> dict[str, str]:
        """The settings for Spark; the credentials are in the environment."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": CREDENTIALS["AWS_DEFAULT_REGION"],
            "fs.s3a.path.style.access": "true",
        }

    def put(self, key: str, content: str | bytes) -> None:
        """Write an object."""
        body = content.encode() if isinstance(content, str) else content
        self.client.put_object(Bucket=self.name, Key=key, Body=body)

    @cached_property
    def client(self) -> Any:
        """A client that retries while the server starts."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"max_attempts": 12}),
        )


def start_moto(port: int) -> subprocess.Popen[bytes]:
    """Start moto's server, which keeps its buckets in memory."""
    return start_server([sys.executable, "-m", "embedded.servers.moto_server", str(port)])


def start_server(argv: list[str], **environment: str) -> subprocess.Popen[bytes]:
    """Start a server without output."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, env={**os.environ, **environment}, stdout=quiet, stderr=quiet)


@contextmanager
def s3_bucket(name: str, start: StartServer = start_moto) -> Iterator[Bucket]:
    """Provide an empty bucket within the block. Use each name once: Spark caches the server of a bucket by its name."""
    port = free_port()
    server = start(port)
    try:
        bucket = Bucket(f"http://127.0.0.1:{port}", name)
        bucket.client.create_bucket(Bucket=name)
        yield bucket
    finally:
        server.terminate()
        server.wait(timeout=20)

"""A bucket in a real S3 server on loopback: for tests, and to race writers on."""

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
"""What every client of the server has in its environment."""

StartServer = Callable[[int], "subprocess.Popen[bytes]"]
"""Starts an S3 server that listens at the port, and knows `CREDENTIALS`."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, and where its server listens."""

    endpoint: str
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """What leads a client to it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.endpoint}

    @property
    def hadoop_settings(self) -> dict[str, str]:
        """What leads Spark to it; the credentials are in the environment."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": CREDENTIALS["AWS_DEFAULT_REGION"],
            "fs.s3a.path.style.access": "true",
        }

    def put(self, key: str, content: str | bytes) -> None:
        """Deliver an object."""
        body = content.encode() if isinstance(content, str) else content
        self.client.put_object(Bucket=self.name, Key=key, Body=body)

    @cached_property
    def client(self) -> Any:
        """A client that keeps trying while the server starts."""
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name=CREDENTIALS["AWS_DEFAULT_REGION"],
            aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
            config=Config(retries={"max_attempts": 12}),
        )


def start_moto(port: int) -> subprocess.Popen[bytes]:
    """moto's server, which keeps its buckets in memory."""
    return start_server([sys.executable, "-m", "embedded.servers.moto_server", str(port)])


def start_server(argv: list[str], **environment: str) -> subprocess.Popen[bytes]:
    """A server that says nothing."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(argv, env={**os.environ, **environment}, stdout=quiet, stderr=quiet)


@contextmanager
def s3_bucket(name: str, start: StartServer = start_moto) -> Iterator[Bucket]:
    """An empty bucket, for a while. Spark keeps a bucket's first server by its name: let each have its own."""
    port = free_port()
    server = start(port)
    try:
        bucket = Bucket(f"http://127.0.0.1:{port}", name)
        bucket.client.create_bucket(Bucket=name)
        yield bucket
    finally:
        server.terminate()
        server.wait(timeout=20)

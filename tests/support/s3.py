"""A bucket in a real S3 server on loopback."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config

from embedded.home import free_port

CREDENTIALS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}
"""What every client of the server has in its environment."""


@dataclass(frozen=True)
class Bucket:
    """A bucket, and where its server listens."""

    endpoint: str
    name: str

    @property
    def environment(self) -> dict[str, str]:
        """What leads a client to it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL_S3": self.endpoint}

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


@contextmanager
def s3_bucket(name: str) -> Iterator[Bucket]:
    """An empty bucket, for a while. Spark keeps a bucket's first server by its name: let each have its own."""
    port = free_port()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.s3_server", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        bucket = Bucket(f"http://127.0.0.1:{port}", name)
        bucket.client.create_bucket(Bucket=name)
        yield bucket
    finally:
        server.terminate()
        server.wait(timeout=20)

"""A bucket that all tests of a process share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from embedded.servers.s3 import Bucket, s3_bucket


@pytest.fixture(scope="session")
def shared_bucket() -> Iterator[Bucket]:
    """A bucket whose server all modules share: each writes below a prefix of its own."""
    with s3_bucket("lake") as bucket:
        yield bucket


@pytest.fixture
def bucket(shared_bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """That bucket, which this process reaches by its environment."""
    for name, value in shared_bucket.environment.items():
        monkeypatch.setenv(name, value)
    return shared_bucket

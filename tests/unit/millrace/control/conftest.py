"""A landing folder, an empty table, the ledger and gates of a lakehouse, and a bucket whose store may fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.servers.s3 import Bucket
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.stored_tables import open_table
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import create_table
from tests.support.ledger.planning import CheckedPlanner
from tests.support.storage.faulty_s3 import FaultyS3, faulty_s3


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """The landing root; nothing is delivered yet."""
    return tmp_path / "landing"


@pytest.fixture
def deliver(landing: Path) -> Deliver:
    """The source system."""
    return Deliver(landing)


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """The lakehouse at `tmp_path`."""
    return LakehousePaths(tmp_path)


@pytest.fixture
def table(paths: LakehousePaths) -> Path:
    """An empty `silver.flights`."""
    path = paths.table("silver.flights")
    create_table(path)
    return path


@pytest.fixture
def table_id(table: Path) -> str:
    """Delta's id of `silver.flights`."""
    return str(open_table(table).metadata().id)


@pytest.fixture
def gates(paths: LakehousePaths) -> Gates:
    """The results of gates of the lakehouse at `tmp_path`."""
    return Gates(paths)


@pytest.fixture
def ledger(paths: LakehousePaths) -> Ledger:
    """The ledger of the lakehouse at `tmp_path`."""
    return Ledger(paths)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lakehouse"


@pytest.fixture
def advise(root: Path, landing: Path, tmp_path: Path) -> CheckedPlanner:
    return CheckedPlanner(Settings(root=root, landing=landing), tmp_path)


@pytest.fixture(scope="session")
def proxy(shared_bucket: Bucket) -> Iterator[FaultyS3]:
    """A proxy before the server of the shared bucket."""
    with faulty_s3(shared_bucket.endpoint) as proxy:
        yield proxy


@pytest.fixture
def faulty(proxy: FaultyS3) -> Iterator[FaultyS3]:
    """The proxy; after the test no request fails any more."""
    yield proxy
    proxy.calm()


@pytest.fixture
def proxied_bucket(bucket: Bucket, faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """The bucket, which this process reaches through the proxy."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", faulty.endpoint)
    return bucket

"""Leases and other objects in a bucket: what a store adds to lost answers, outages and clocks."""

from __future__ import annotations

import signal
import time
from uuid import uuid4

import pytest

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.leases.leases import LeaseClaim, Leases
from millrace.control.storage.objects_on_s3 import S3ObjectStore, require_conditional_puts
from millrace.errors import LeaseLostError, StorageError
from tests.support.ledger.lease_holder import HOLDER, STREAM, STREAM_KEY, TABLE, lease_of_other_process
from tests.support.storage.faulty_s3 import FaultyS3, lose_answer, refuse_credentials, reset, slow_down


@pytest.fixture
def folder(proxied_bucket: Bucket) -> S3Path:
    return S3Path(f"s3://{proxied_bucket.name}/{uuid4().hex}/_millrace/leases")


@pytest.fixture
def store(folder: S3Path) -> S3ObjectStore:
    return S3ObjectStore(folder)


def etag_of(store: S3ObjectStore, key: str) -> str:
    found = store.get(key)
    assert found is not None
    return found.etag


def body_of(store: S3ObjectStore, key: str) -> bytes | None:
    found = store.get(key)
    return found.body if found else None


@pytest.mark.parametrize("fault", [lose_answer, reset, slow_down])
def test_a_put_with_a_lost_answer_or_a_retry_succeeds(store: S3ObjectStore, faulty: FaultyS3, fault: object) -> None:
    before = faulty.faults_met()
    faulty.on("PUT", "/leases/a", fault)  # type: ignore[arg-type]
    assert store.put_if_absent("a", b"mine")
    faulty.on("PUT", "/leases/a", fault)  # type: ignore[arg-type]
    assert store.put_if_match("a", b"mine too", etag_of(store, "a"))
    assert faulty.faults_met() - before == 2
    assert body_of(store, "a") == b"mine too"


def test_an_error_of_a_store_names_the_cause_and_the_way_out(store: S3ObjectStore, faulty: FaultyS3) -> None:
    faulty.on("GET", "", refuse_credentials)
    with pytest.raises(StorageError, match=r"^s3://lake/\S+: the credentials have expired \(ExpiredToken\)\nRenew"):
        store.get("a")


def test_a_store_that_ignores_the_condition_is_refused(folder: S3Path, faulty: FaultyS3) -> None:
    require_conditional_puts(folder / "good")
    faulty.ignore("If-None-Match")
    with pytest.raises(StorageError, match=r"it replaces an object in spite of If-None-Match"):
        require_conditional_puts(folder / "bad")
    assert S3ObjectStore(folder / "good").keys("") == S3ObjectStore(folder / "bad").keys("") == []


def test_a_lease_expires_by_the_clock_of_the_store_and_its_holder_that_wakes_up_then_does_no_harm(
    folder: S3Path, store: S3ObjectStore
) -> None:
    with lease_of_other_process(folder, lasts_s=1.0) as process:
        with pytest.raises(LeaseLostError, match=f"held by {HOLDER}"), Leases(store, "x", patience_s=0).table(TABLE):
            pytest.fail("both held it")
        process.send_signal(signal.SIGSTOP)
        stopped = time.monotonic()
        with Leases(store, "the next", lasts_s=60, patience_s=60).stream(TABLE, STREAM) as waited:
            assert waited.holders == HOLDER
            assert 0.5 < time.monotonic() - stopped < 30
            taken = body_of(store, STREAM_KEY)
            process.send_signal(signal.SIGCONT)
            time.sleep(1)  # several of its heartbeats
            assert process.communicate("release\n", timeout=60) == ("released\n", None)
            assert process.returncode == 0
            assert body_of(store, STREAM_KEY) == taken
    assert store.keys("") == []


def test_a_heartbeat_continues_after_an_outage_of_the_store(store: S3ObjectStore, faulty: FaultyS3) -> None:
    with Leases(store, "run one", lasts_s=0.9).stream(TABLE, STREAM):
        faulty.on("PUT", STREAM_KEY, refuse_credentials, times=2)
        end = time.monotonic() + 60
        while LeaseClaim.from_bytes(body_of(store, STREAM_KEY) or b"").beats == 0:
            assert time.monotonic() < end, "the lease was renewed in the end"
            time.sleep(0.1)
        assert not faulty.faults_pending()
    assert store.keys("") == []

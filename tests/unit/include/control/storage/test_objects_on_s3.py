"""Leases and other objects in a bucket: exactly one of several racing writers wins, even if answers are lost."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.lake_path import S3Path
from include.control.leases.claim import LeaseClaim
from include.control.leases.leases import Leases
from include.control.storage.objects_on_s3 import S3ObjectStore, require_conditional_puts
from include.errors import LeaseLostError, NotReadyError, StorageError
from tests.support.ledger.lease_holder import HOLDER, STREAM, TABLE, lease_of_other_process, release
from tests.support.storage.faulty_s3 import FaultyS3, faulty_s3, lose_answer, refuse_credentials, reset, slow_down

STREAM_KEY = f"{TABLE}.stream-{STREAM}"


@pytest.fixture(scope="module")
def server() -> Iterator[Bucket]:
    with s3_bucket("leases") as bucket:
        yield bucket


@pytest.fixture
def faulty(server: Bucket) -> Iterator[FaultyS3]:
    with faulty_s3(server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def folder(server: Bucket, faulty: FaultyS3, monkeypatch: pytest.MonkeyPatch) -> S3Path:
    for name, value in Bucket(faulty.endpoint, server.name).environment.items():
        monkeypatch.setenv(name, value)
    return S3Path(f"s3://{server.name}/{uuid4().hex}/_millrace/leases")


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


def test_an_object_is_created_once_and_found_by_its_prefix(store: S3ObjectStore) -> None:
    assert (store.get("a.one"), store.keys("")) == (None, [])
    assert store.put_if_absent("a.one", b"first")
    assert not store.put_if_absent("a.one", b"second")
    store.put_if_absent("b.two", b"other")
    assert body_of(store, "a.one") == b"first"
    assert (store.keys(""), store.keys("a.")) == (["a.one", "b.two"], ["a.one"])


def test_only_the_newest_etag_can_replace_or_delete_an_object(store: S3ObjectStore) -> None:
    store.put_if_absent("a", b"first")
    seen = etag_of(store, "a")
    assert store.put_if_match("a", b"second", seen)
    assert not store.put_if_match("a", b"third", seen)
    assert not store.delete_if_match("a", seen)
    assert body_of(store, "a") == b"second"
    assert store.delete_if_match("a", etag_of(store, "a"))
    assert not store.put_if_match("a", b"fourth", seen)
    assert store.get("a") is None


def test_one_of_many_concurrent_writers_creates_an_object(store: S3ObjectStore) -> None:
    for number in range(5):
        bodies = [f"{number} {racer}".encode() for racer in range(6)]
        with ThreadPoolExecutor(len(bodies)) as racers:
            won = list(racers.map(lambda body, key=str(number): store.put_if_absent(key, body), bodies))
        assert sum(map(bool, won)) == 1
        assert body_of(store, str(number)) == bodies[[*map(bool, won)].index(True)]


@pytest.mark.parametrize("fault", [lose_answer, reset, slow_down])
def test_a_put_with_a_lost_answer_or_a_retry_succeeds(store: S3ObjectStore, faulty: FaultyS3, fault: object) -> None:
    faulty.on("PUT", "/leases/a", fault)  # type: ignore[arg-type]
    assert store.put_if_absent("a", b"mine")
    faulty.on("PUT", "/leases/a", fault)  # type: ignore[arg-type]
    assert store.put_if_match("a", b"mine too", etag_of(store, "a"))
    assert faulty.faults_met() == 2
    assert body_of(store, "a") == b"mine too"


def test_errors_of_a_store_name_the_cause_and_the_way_out(store: S3ObjectStore, faulty: FaultyS3) -> None:
    faulty.on("GET", "", refuse_credentials)
    with pytest.raises(StorageError, match=r"^s3://leases/\S+: the credentials have expired \(ExpiredToken\)\nRenew"):
        store.get("a")
    faulty.on("GET", "", reset, times=100)
    with pytest.raises(NotReadyError, match="no answer"):
        store.get("a")


def test_a_store_that_ignores_the_condition_is_refused(folder: S3Path, faulty: FaultyS3) -> None:
    require_conditional_puts(folder / "good")
    faulty.ignore("If-None-Match")
    with pytest.raises(StorageError, match=r"it replaces an object in spite of If-None-Match"):
        require_conditional_puts(folder / "bad")
    assert S3ObjectStore(folder / "good").keys("") == S3ObjectStore(folder / "bad").keys("") == []


def test_a_lease_excludes_others_and_is_released(store: S3ObjectStore) -> None:
    first, second = (Leases(store, name, lasts_s=60, patience_s=0.5) for name in ("run one", "run two"))
    with first.stream(TABLE, STREAM):
        for wanted in (second.stream(TABLE, STREAM), second.table(TABLE)):
            with pytest.raises(LeaseLostError, match="held by run one"), wanted:
                pytest.fail("both held it")
        assert store.keys("") == [STREAM_KEY]
    with second.table(TABLE) as waited:
        assert waited.holders == ""
    assert store.keys("") == []


def test_the_lease_of_a_killed_holder_expires_by_the_clock_of_the_store(folder: S3Path, store: S3ObjectStore) -> None:
    with lease_of_other_process(folder, lasts_s=5.0) as process:
        process.send_signal(signal.SIGKILL)
        process.wait(timeout=30)
        killed = time.monotonic()
        assert LeaseClaim.from_bytes(body_of(store, STREAM_KEY) or b"").holder == HOLDER
        with Leases(store, "the next", patience_s=60).stream(TABLE, STREAM) as waited:
            assert waited.holders == HOLDER
            assert 0.5 < time.monotonic() - killed < 30


def test_a_holder_that_wakes_up_after_its_expiry_does_no_harm(folder: S3Path, store: S3ObjectStore) -> None:
    with lease_of_other_process(folder, lasts_s=1.0) as process:
        process.send_signal(signal.SIGSTOP)
        with Leases(store, "the next", lasts_s=60, patience_s=60).stream(TABLE, STREAM):
            taken = body_of(store, STREAM_KEY)
            process.send_signal(signal.SIGCONT)
            time.sleep(1.5)  # several of its heartbeats
            release(process)
            assert body_of(store, STREAM_KEY) == taken
    assert store.keys("") == []


def test_a_heartbeat_continues_after_an_outage_of_the_store(store: S3ObjectStore, faulty: FaultyS3) -> None:
    with Leases(store, "run one", lasts_s=1.5).stream(TABLE, STREAM):
        faulty.on("PUT", STREAM_KEY, refuse_credentials, times=2)
        end = time.monotonic() + 60
        while LeaseClaim.from_bytes(body_of(store, STREAM_KEY) or b"").beats == 0:
            assert time.monotonic() < end, "the lease was renewed in the end"
            time.sleep(0.3)
    assert store.keys("") == []

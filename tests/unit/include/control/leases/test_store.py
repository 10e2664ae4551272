"""Leases in a separate folder: with a store without conditional puts, only they exclude writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pytest

from embedded.servers.s3 import Bucket, s3_bucket
from include.contracts.lake_path import S3Path
from include.control.leases.store import lakehouse_leases
from include.control.ledger.ops_table import OpsTable
from include.control.ledger.states.table_state import StatePart, TableStates
from include.errors import LeaseLostError
from include.paths import LakehousePaths
from tests.support.storage.faulty_s3 import faulty_s3

TABLE = "silver.flights"
WRITERS, EACH, ROUNDS = 3, 3, 20
EVENTS = pa.schema([("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("word", pa.string())])
SOON, LATER = timedelta(seconds=0.3), timedelta(seconds=60)


@pytest.fixture(scope="module")
def sound() -> Iterator[Bucket]:
    with s3_bucket("lake") as bucket:
        yield bucket


@pytest.fixture(scope="module")
def careless(sound: Bucket) -> Iterator[Bucket]:
    """Yield a bucket in a store without conditional puts."""
    with faulty_s3(sound.endpoint) as proxy:
        proxy.ignore("If-None-Match")
        proxy.ignore("If-Match")
        yield Bucket(proxy.endpoint, sound.name)


@pytest.fixture
def ledger(careless: Bucket, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in careless.environment.items():
        monkeypatch.setenv(name, value)
    return careless.name


def lost_events(bucket: str, lease_store: Path | None = None) -> int:
    """Let several writers append events at the same time, and return the number of lost events."""
    path, together = S3Path(f"s3://{bucket}/{uuid4().hex}/ops/events"), threading.Barrier(WRITERS)

    def append(number: int) -> None:
        table = OpsTable(path, EVENTS, lease_store=lease_store)
        for word in range(EACH):
            together.wait(60)
            table.append([{"recorded_at": datetime.now(UTC), "table": TABLE, "word": f"{number}-{word}"}])

    with ThreadPoolExecutor(WRITERS) as writers:
        list(writers.map(append, range(WRITERS)))
    found = OpsTable(path, EVENTS).events(TABLE)
    return WRITERS * EACH - len({event["word"] for event in found})


def test_only_with_the_setting_a_table_has_one_writer_for_all_streams(tmp_path: Path) -> None:
    usual = LakehousePaths(tmp_path / "usual")
    first, second = (lakehouse_leases(usual, name, SOON) for name in ("one", "two"))
    with first.stream(TABLE, "main"), second.stream(TABLE, "other"):
        assert len(list(usual.leases.glob("silver*"))) == 2  # type: ignore[union-attr]
    paths = LakehousePaths(tmp_path / "lake", lease_store=tmp_path / "shared")
    first, second = (lakehouse_leases(paths, name, SOON) for name in ("one", "two"))
    with first.stream(TABLE, "main"):
        assert [file.name for file in (tmp_path / "shared").glob("silver*")] == [f"{TABLE}.table"]
        for wanted in (second.stream(TABLE, "other"), second.table(TABLE)):
            with pytest.raises(LeaseLostError, match="held by one"), wanted:
                pytest.fail("both held it")
        with second.stream("silver.planes", "main") as waited:
            assert waited.holders == ""
    assert not (tmp_path / "lake").exists()


def test_with_the_setting_maintenance_sees_a_batch_that_waits(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path / "lake", lease_store=tmp_path / "shared")
    first, second = (lakehouse_leases(paths, name, LATER) for name in ("one", "two"))
    assert first.waiting_batches(TABLE) == ""
    heard: list[str] = []

    def work() -> None:
        with second.stream(TABLE, "main") as waited:
            heard.append(waited.holders)

    batch = threading.Thread(target=work)
    with first.table(TABLE):
        batch.start()
        while not first.waiting_batches(TABLE):
            assert batch.is_alive()
    batch.join(timeout=60)
    assert [who.split()[0] for who in heard] == ["one"]


def test_only_with_the_setting_such_a_store_loses_no_events_of_the_ledger(
    ledger: str, sound: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert any(lost_events(ledger) for _ in range(ROUNDS))
    assert lost_events(ledger, tmp_path / "shared") == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", sound.endpoint)
    assert lost_events(ledger) == 0, "conditional puts suffice"


class Counted(StatePart):
    number: int


def test_with_the_setting_such_a_store_loses_no_change_of_a_state(ledger: str, tmp_path: Path) -> None:
    paths = LakehousePaths(S3Path(f"s3://{ledger}/{uuid4().hex}"), lease_store=tmp_path / "shared")
    first, second = TableStates(paths), TableStates(paths)
    for states in (first, second, first):
        states.change(TABLE, (Counted, lambda kept: Counted(table_id="1", number=kept.number + 1 if kept else 1)))
    assert second.read(TABLE, Counted) == Counted(table_id="1", number=3)

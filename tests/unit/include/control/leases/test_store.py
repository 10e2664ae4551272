"""Leases in a separate folder: with a store without conditional puts, only they exclude writers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
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
from tests.support.processes import LineUp, run_together
from tests.support.storage.faulty_s3 import faulty_s3

TABLE = "silver.flights"
WRITERS, EACH, ROUNDS = 4, 3, 20
EVENTS = pa.schema([("recorded_at", pa.timestamp("us", tz="UTC")), ("table", pa.string()), ("word", pa.string())])
SOON, LATER = timedelta(seconds=0.3), timedelta(seconds=60)


@pytest.fixture(scope="module")
def careless() -> Iterator[Bucket]:
    """Yield a bucket in a store without conditional puts."""
    with s3_bucket("careless") as bucket, faulty_s3(bucket.endpoint) as proxy:
        proxy.ignore("If-None-Match")
        proxy.ignore("If-Match")
        yield Bucket(proxy.endpoint, bucket.name)


@pytest.fixture
def ledger(careless: Bucket, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in careless.environment.items():
        monkeypatch.setenv(name, value)
    return careless.name


def append(number: int, line_up: LineUp, bucket: str, folder: str, lease_store: Path | None) -> None:
    table = OpsTable(S3Path(f"s3://{bucket}/{folder}/ops/events"), EVENTS, lease_store=lease_store)
    for word in range(EACH):
        line_up()
        table.append([{"recorded_at": datetime.now(UTC), "table": TABLE, "word": f"{number}-{word}"}])


def lost_events(bucket: str, lease_store: Path | None = None) -> int:
    """Let several processes append events, and return the number of lost events."""
    folder = uuid4().hex
    run_together(WRITERS, append, bucket, folder, lease_store)
    found = OpsTable(S3Path(f"s3://{bucket}/{folder}/ops/events"), EVENTS).events(TABLE)
    return WRITERS * EACH - len({event["word"] for event in found})


def test_without_the_setting_leases_are_next_to_the_tables_and_streams_are_independent(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    first, second = (lakehouse_leases(paths, name, SOON) for name in ("one", "two"))
    with first.stream(TABLE, "main"), second.stream(TABLE, "other"):
        assert len(list(paths.leases.glob("silver*"))) == 2  # type: ignore[union-attr]


def test_with_the_setting_a_table_has_one_writer_for_all_streams(tmp_path: Path) -> None:
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


def test_without_the_setting_such_a_store_loses_events_of_the_ledger(ledger: str) -> None:
    assert any(lost_events(ledger) for _ in range(ROUNDS))


def test_with_the_setting_such_a_store_loses_no_events(ledger: str, tmp_path: Path) -> None:
    assert lost_events(ledger, tmp_path / "shared") == 0


class Counted(StatePart):
    number: int


def test_with_the_setting_such_a_store_loses_no_change_of_a_state(ledger: str, tmp_path: Path) -> None:
    paths = LakehousePaths(S3Path(f"s3://{ledger}/{uuid4().hex}"), lease_store=tmp_path / "shared")
    first, second = TableStates(paths), TableStates(paths)
    for states in (first, second, first):
        states.change(TABLE, (Counted, lambda kept: Counted(table_id="1", number=kept.number + 1 if kept else 1)))
    assert second.read(TABLE, Counted) == Counted(table_id="1", number=3)

"""Readers whose version is old, by the states of tables: the same as VACUUM finds by the logs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from millrace.control.ledger.states import recent_batches
from millrace.control.maintenance.retention import CERTIFIED_READERS, readers_of
from millrace.control.ops_tables import OpsTables
from millrace.overview import lakehouse
from millrace.overview.attention import Remedy, Trouble, attention_needed
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.overview.tables.table_overview import TableOverview
from millrace.paths import LakehousePaths
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    catalog_of,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.ledger.delta_tables import judge, load_batch, sources_reading

BRONZE, SILVER = bronze_spec(), silver_spec()
NOW = datetime.now(UTC)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Silver has read the first of two certified versions of bronze; an editor holds a lock on one of the specs."""
    write_specs(tmp_path / "specs", bronze_document(), silver_document())
    (tmp_path / "specs/bronze/shop/.#orders.yaml").symlink_to("ann@laptop.4711")
    consumed = certify(tmp_path)
    load_batch(tmp_path, SILVER, sources=sources_reading(tmp_path, bronze__orders=(None, consumed)))
    certify(tmp_path)
    return tmp_path


def certify(root: Path) -> int:
    version = load_batch(root, BRONZE).version
    judge(root, BRONZE, version)
    return version


def table(root: Path, name: str = BRONZE.table, now: datetime = NOW) -> TableOverview:
    reader = LakehouseReader(LakehousePaths(root), root / "specs")
    one = reader.read_table(name, now, no_failed_tasks)
    (same,) = (each for each in reader.read(now, no_failed_tasks) if each.table == name)
    assert one.readers == same.readers
    return one


def test_the_readers_are_those_that_vacuum_finds(root: Path) -> None:
    found = table(root).readers
    by_logs = readers_of(BRONZE, catalog_of(BRONZE, SILVER), OpsTables(LakehousePaths(root)))
    assert [(each.name, each.version) for each in found] == [(each.name, each.version) for each in by_logs]
    assert [each.name for each in found] == [CERTIFIED_READERS, "silver.orders"]
    assert [each.since is None for each in found] == [each.since is None for each in by_logs] == [True, False]


def test_a_reader_in_danger_needs_a_person(root: Path) -> None:
    for days, kinds in ((14, []), (16, [Trouble.HEALTH])):
        later = datetime.now(UTC) + timedelta(days=days)
        items = attention_needed([table(root, now=later)], later)
        assert [item.kind for item in items] == kinds, days
    [item] = items
    assert item.cause == "VACUUM is refused, because it would soon cut off silver.orders (version 1)"
    assert (item.action, item.names) == (Remedy.RUN, ["bronze.orders health silver.orders"])
    load_batch(root, SILVER, sources=sources_reading(root, bronze__orders=(1, 2)))
    assert attention_needed([table(root, now=later)], later) == []


def test_a_reader_behind_all_known_batches_is_so_since_it_has_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (recent_batches, lakehouse):
        monkeypatch.setattr(module, "MOST_BATCHES", 4)
    for _ in range(4):
        version = load_batch(root, BRONZE).version
    judge(root, BRONZE, version)
    last = table(root, SILVER.table).last
    assert [each.since for each in table(root).readers] == [None, last.at]

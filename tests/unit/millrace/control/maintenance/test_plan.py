"""What maintenance does in one run: each job of a table once, within bounds, and each table in its turn."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.control.log.delta_log import read_commit
from millrace.control.maintenance.file_layout import LEAST_SMALL_FILES
from millrace.control.maintenance.maintained import Maintained
from millrace.control.maintenance.old_files import oldest_whole
from millrace.control.maintenance.plan import PlannedTable, Step, actions_of_run, planned_table
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import catalog_of, silver_spec
from tests.support.ledger.delta_tables import append, create_table, create_table_of

LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
RETENTION = timedelta(days=30)
RETAIN_AN_HOUR = {"delta.deletedFileRetentionDuration": "interval 1 hours"}
FIRST, SECOND = silver_spec(), silver_spec(table="silver.planes")


@pytest.fixture
def tables(tmp_path: Path) -> list[PlannedTable]:
    """Two tables of small files, the first planned later than the second; each has an old file of 5 bytes."""
    ops = OpsTables(LakehousePaths(tmp_path))
    planned = []
    for days, spec in ((2, FIRST), (1, SECOND)):
        path = Path(str(ops.paths.table(spec.table)))
        identity = create_table_of(spec, path)
        for _ in range(LEAST_SMALL_FILES):
            append(path)
        (path / "stray.parquet").write_bytes(b"12345")
        os.utime(path / "stray.parquet", (0, 0))
        known = Maintained(table_id=identity, planned_at=LONG_AGO + timedelta(days=days))
        ops.states.change(spec.table, (Maintained, lambda _, known=known: known))
        table = planned_table(spec, catalog_of(spec), ops, datetime.now(UTC))
        assert table is not None
        planned.append(table)
    return planned


def chosen(tables: list[PlannedTable], *, size: int = 10**9, actions: int = 9, **may: bool) -> list[str]:
    found = actions_of_run(tables, most_bytes=size, most_actions=actions, **may)
    return [f"{action.table} {action.step}" for action in found]


def test_the_table_that_was_planned_longest_ago_comes_first_and_what_is_over_is_left(
    tables: list[PlannedTable],
) -> None:
    first, second = (table.actions for table in tables)
    assert [action.step for action in first] == [Step.BIN_PACK, Step.VACUUM]
    every = [f"{table} {step}" for table in (SECOND.table, FIRST.table) for step in ("bin-pack", "vacuum")]
    assert chosen(tables) == every
    assert chosen(tables, actions=3) == every[:3]
    assert chosen(tables, size=1, deletes=False) == every[:1], "one rewrite at least"
    size = second[0].size
    assert size
    assert chosen(tables, size=1) == [every[0], every[1], every[3]], "what is deleted is not rewritten"
    assert chosen(tables, deletes=False) == [every[0], every[2]]


def test_a_job_of_a_table_is_done_once(tables: list[PlannedTable]) -> None:
    table = tables[0]
    twice = PlannedTable(table.table, table.storage, table.reason, table.health, table.actions * 2)
    assert chosen([twice]) == [f"{FIRST.table} bin-pack", f"{FIRST.table} vacuum"]


def test_what_a_table_keeps_for_less_than_a_week_is_deleted_only_if_a_person_allows_it(
    tmp_path: Path, tables: list[PlannedTable]
) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    short = silver_spec(maintenance={"vacuum": {"retain": "167 hours"}, "optimize": "off"})
    DeltaTable(str(ops.paths.table(short.table))).alter.set_table_properties(RETAIN_AN_HOUR)
    table = planned_table(short, catalog_of(short), ops, datetime.now(UTC))
    assert table is not None
    properties, vacuum = table.actions
    assert properties.step is Step.SET_PROPERTIES
    table = replace(table, actions=(vacuum,))
    assert (vacuum.step, vacuum.needs_approval) == (Step.VACUUM, True)
    assert vacuum.reason == "no version of the last 167 hours needs 1 file; the oldest that stays is version 0"
    assert chosen([table]) == []
    assert chosen([table], is_allowed=True) == [f"{FIRST.table} vacuum"]
    assert chosen([table], is_allowed=True, deletes=False) == []
    assert not any(action.needs_approval for each in tables for action in each.actions), "30 days need nobody"


def test_the_oldest_version_that_stays_was_the_newest_a_retention_ago(tmp_path: Path) -> None:
    create_table(tmp_path)
    commits = [read_commit(tmp_path, append(tmp_path)) for _ in range(4)]
    for commit in filter(None, commits):
        for at in (commit.at, commit.at + timedelta(microseconds=1)):
            assert oldest_whole(tmp_path, RETENTION, at + RETENTION) == commit.version
    first = commits[0]
    assert first
    assert oldest_whole(tmp_path, RETENTION, first.at + RETENTION - timedelta(hours=1)) == 0


def test_properties_are_set_first_by_a_job_of_their_own(tables: list[PlannedTable], tmp_path: Path) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    spec = FIRST.model_copy(update={"owner": "the shop"})
    planned = planned_table(spec, catalog_of(spec), ops, datetime.now(UTC))
    assert planned is not None
    [first, *_] = planned.actions
    assert (first.step, first.reason) == (Step.SET_PROPERTIES, "not as the spec says: millrace.owner")
    assert chosen([planned], size=0)[:2] == [f"{FIRST.table} set properties", f"{FIRST.table} bin-pack"]

"""The health of a table, measured by its log: its files, what it does not need any more, and what is to be done."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.log.delta_log import read_commit
from millrace.control.log.property_commits import set_properties
from millrace.control.maintenance.file_layout import LEAST_SMALL_FILES, Rewrite
from millrace.control.maintenance.health import StorageState, TableHealth, table_health
from millrace.control.maintenance.health_days import HealthDays, keep_health
from millrace.control.maintenance.maintained import Maintained, completed, keep_maintained
from millrace.control.ops_tables import OpsTables
from millrace.errors import MillraceError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, catalog_of, silver_spec
from tests.support.ledger.delta_tables import (
    append,
    clean_log,
    commit_file,
    create_table,
    create_table_of,
    delete_all,
    judge,
    load_batch,
    optimize,
)
from tests.support.ledger.quarantine_rows import quarantine, refused

WEEK: dict[str, Any] = {"vacuum": {"retain": "7 days"}}
ORDERED, PLAIN = silver_spec(zorder_by=["amount", "day"], maintenance=WEEK), silver_spec(maintenance=WEEK)
RETENTION = timedelta(days=7)
NOW = datetime.now(UTC)


@pytest.fixture
def ops(tmp_path: Path) -> OpsTables:
    return OpsTables(LakehousePaths(tmp_path))


@pytest.fixture
def path(ops: OpsTables) -> Path:
    return Path(str(ops.paths.table(PLAIN.table)))


def many(path: Path, count: int) -> None:
    create_table_of(PLAIN, path)
    for _ in range(count):
        append(path)


def health(ops: OpsTables, spec: AnySpec = PLAIN, now: datetime = NOW) -> TableHealth:
    found = table_health(spec, catalog_of(spec), ops, now)
    assert found is not None
    return found


def z_order(path: Path, columns: list[str]) -> int:
    """Make a commit as that of OPTIMIZE ZORDER BY."""
    version = optimize(path)
    file = commit_file(path, version)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["operationParameters"]["zOrderBy"] = json.dumps(columns, separators=(",", ":"))
    file.write_text("\n".join(map(json.dumps, lines)))
    return version


def files(path: Path) -> set[str]:
    return {file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def test_many_small_files_are_joined_next(ops: OpsTables, path: Path) -> None:
    assert table_health(PLAIN, catalog_of(PLAIN), ops, NOW) is None, "it was never written"
    many(path, LEAST_SMALL_FILES)
    found = health(ops)
    assert (found.storage, found.answer) == (StorageState.TO_MAINTAIN, "The next maintenance joins 8 small files.")
    assert (found.rows, found.layout.small_files, found.log.commits, found.log.after_checkpoint) == (8, 8, 9, 9)
    assert next((each.name, each.files) for each in found.classes) == ("under 1 MiB", 8)
    off = health(ops, silver_spec(maintenance={"optimize": "off", **WEEK}))
    assert (off.storage, off.answer) == (StorageState.IN_ORDER, "The next maintenance leaves the files as they are.")


def test_the_last_z_order_is_found_in_the_log_and_kept_for_when_delta_has_cleaned_it(
    ops: OpsTables, path: Path
) -> None:
    many(path, 3)
    optimize(path)
    append(path)
    assert health(ops, ORDERED).layout.written_share == 1, "put together, not ordered"
    assert (health(ops, ORDERED).rewrite, health(ops, ORDERED).ordered_at) == (Rewrite.Z_ORDER, None)
    commit = read_commit(path, z_order(path, ["amount", "day"]))
    assert commit is not None
    append(path)
    found = health(ops, ORDERED)
    assert found.ordered_at == found.maintained.optimized_at == commit.at
    assert 0 < found.layout.written_share < 1
    assert health(ops, silver_spec(zorder_by=["day"])).layout.written_share == 1, "in the order of other columns"
    keep_maintained(ops, PLAIN.table, vacuumed_at=NOW)
    clean_log(path, below=append(path))
    kept = health(ops, ORDERED)
    assert (kept.ordered_at, kept.maintained.vacuumed_at) == (commit.at, NOW)
    stale = Maintained(table_id="another table", upto=100, vacuumed_at=NOW)
    ops.states.change(PLAIN.table, (Maintained, lambda _: stale))
    assert health(ops, ORDERED).maintained.vacuumed_at is None


@pytest.mark.parametrize("is_cleaned", [False, True])
def test_a_file_is_due_a_retention_after_a_version_removed_it_or_else_after_it_was_written(
    ops: OpsTables, path: Path, is_cleaned: bool
) -> None:
    create_table(path, deletedFileRetentionDuration="interval 7 days")
    rows = pa.table({"n": [1, 2], "day": ["2013-01-01 10:00", "_hidden %é"]})
    write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite", partition_by=None)
    write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    removing = read_commit(path, delete_all(path))
    assert removing is not None
    write_deltalake(str(path), rows, mode="append")
    live = {Path(uri).relative_to(path).as_posix() for uri in map(_local, DeltaTable(str(path)).file_uris())}
    (path / "_change_data").mkdir()
    for name in ("stray.parquet", "_change_data/cdc.parquet", ".stray.parquet", "_other/x.parquet"):
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(b"12345")
        os.utime(path / name, (0, 0))
    if is_cleaned:
        clean_log(path, below=removing.version)
    found = health(ops).old
    assert {file.path for file in found.due} == {"stray.parquet", "_change_data/cdc.parquet"}
    assert found.due_bytes == 10
    removed = {file.path: file for file in found.kept}
    assert removed.keys() == files(path) - live - {file.path for file in found.due} - {
        ".stray.parquet",
        "_other/x.parquet",
    }
    assert len(removed) == 3, "one of the table without partitions, and two"
    assert all(file.is_removed for file in removed.values())
    assert found.next_due is not None
    last = max(file.due for file in removed.values())
    assert timedelta(0) <= last - (removing.at + RETENTION) < timedelta(seconds=5)
    later = health(ops, now=last).old
    assert not later.kept
    assert len(later.due) == 5


def test_checkpoints_of_other_systems_may_be_in_parts_or_of_another_kind(ops: OpsTables, path: Path) -> None:
    create_table(path)
    append(path)
    removing = delete_all(path)
    append(path)
    clean_log(path, below=removing + 1)
    [checkpoint] = (path / "_delta_log").glob("*.checkpoint.parquet")
    whole = pq.read_table(checkpoint)
    checkpoint.unlink()
    hint = path / "_delta_log" / "_last_checkpoint"
    hint.unlink()
    for part, rows in ((1, whole.slice(0, 2)), (2, whole.slice(2))):
        name = checkpoint.name.replace("checkpoint.parquet", f"checkpoint.{part:010d}.{2:010d}.parquet")
        pq.write_table(rows, checkpoint.with_name(name))
    [removed] = health(ops).old.kept
    assert removed.is_removed


def test_what_two_runs_know_of_a_table_is_kept_of_both(ops: OpsTables, path: Path) -> None:
    create_table(path)
    known = health(ops).maintained
    keep_maintained(ops, PLAIN.table, planned_at=NOW, searched=0)
    later = known.model_copy(update={"upto": 1, "vacuumed_at": NOW})
    ops.states.change(PLAIN.table, (Maintained, partial(completed, known=later)))
    keep_maintained(ops, PLAIN.table)
    kept = ops.states.read(PLAIN.table, Maintained)
    assert kept is not None
    assert (kept.planned_at, kept.searched, kept.upto, kept.vacuumed_at) == (NOW, 0, 1, NOW)


def test_a_commit_of_another_system_may_leave_out_when_a_file_was_removed_and_its_parameters(
    ops: OpsTables, path: Path
) -> None:
    create_table(path)
    append(path)
    file = commit_file(path, delete_all(path))
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        for kind, key in (("remove", "deletionTimestamp"), ("commitInfo", "operationParameters")):
            if kind in line:
                line[kind][key] = None
                line[kind] |= {"operation": "OPTIMIZE"} if kind == "commitInfo" else {}
    file.write_text("\n".join(map(json.dumps, lines)))
    [removed] = health(ops).old.kept
    assert removed.is_removed


def _local(uri: str) -> str:
    return uri.removeprefix("file://")


def test_a_retention_that_nobody_can_read_is_an_error_and_the_one_of_delta_holds_where_none_is_stated(
    ops: OpsTables, path: Path
) -> None:
    create_table(path)
    assert health(ops).retention == RETENTION
    for stated, days in (
        ("interval 2 weeks", 14), ("INTERVAL 480 HOURS", 20), ("interval 1 week 2 days", 9), ("interval '7' days", 7)
    ):  # fmt: skip
        DeltaTable(str(path)).alter.set_table_properties({"delta.deletedFileRetentionDuration": stated})
        assert health(ops).retention == timedelta(days=days)
    longer = health(ops, silver_spec()).old
    assert (longer.retention, longer.is_stated) == (timedelta(days=30), False), "the spec says more than the table"
    DeltaTable(str(path)).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 1 month"})
    with pytest.raises(MillraceError, match=r"is 'interval 1 month', which is no number of weeks"):
        health(ops)


def test_a_reader_that_is_behind_holds_vacuum_back(ops: OpsTables) -> None:
    bronze = bronze_spec(maintenance=WEEK)
    judge(ops.paths.root, bronze, load_batch(ops.paths.root, bronze).version)
    assert health(ops, bronze).slowest is None
    load_batch(ops.paths.root, bronze)
    assert health(ops, bronze).storage is StorageState.IN_ORDER
    found = health(ops, bronze, NOW + timedelta(days=16))
    assert (found.storage, found.reason) == (
        StorageState.HELD_BACK, "readers of the certified version (version 1) would soon be cut off",
    )  # fmt: skip
    assert found.slowest == found.in_danger[0]


def test_columns_without_statistics_partitions_of_a_small_table_and_features_of_others_are_told(
    ops: OpsTables, path: Path
) -> None:
    create_table(path)
    rows = pa.table({"order_id": ["a"], "amount": [1], "day": ["x"]})
    stats = {"delta.dataSkippingStatsColumns": "amount"}
    write_deltalake(str(path), rows, mode="overwrite", schema_mode="overwrite", partition_by=["day"])
    assert health(ops, ORDERED).unskippable == ()
    assert health(ops, ORDERED).advice[0].startswith("The table has less than 1 TiB, its partitions on average less")
    DeltaTable(str(path)).alter.set_table_properties(stats)
    write_deltalake(str(path), rows, mode="append")
    assert health(ops, ORDERED).unskippable == ("order_id",)
    assert not health(ops).problems
    DeltaTable(str(path)).alter.set_table_properties({"delta.enableDeletionVectors": "true"})
    found = health(ops)
    assert found.storage is StorageState.NEEDS_PERSON
    assert found.reason.startswith("Readers need version 3 of Delta's protocol (")
    assert "deletionVectors" in found.reason


def test_the_last_measure_of_each_of_thirty_days_is_kept(ops: OpsTables, path: Path) -> None:
    create_table(path)
    start = datetime(2026, 1, 1, 3, tzinfo=UTC)
    for day in range(100):
        keep_health(PLAIN, catalog_of(PLAIN), ops, start + timedelta(days=day))
    append(path)
    keep_health(PLAIN, catalog_of(PLAIN), ops, start + timedelta(days=99, hours=1))
    kept, known = ops.states.read(PLAIN.table, HealthDays), ops.states.read(PLAIN.table, Maintained)
    assert kept is not None
    assert known is not None
    assert known.upto == 1, "the log was read up to here"
    assert [(day.day - start.date()).days for day in kept.days] == list(range(70, 100))
    assert [day.files for day in kept.days[-2:]] == [0, 1], "the last of two measures"
    ops.states.change(PLAIN.table, (HealthDays, lambda _: kept.model_copy(update={"table_id": "an earlier table"})))
    keep_health(PLAIN, catalog_of(PLAIN), ops, start)
    again = ops.states.read(PLAIN.table, HealthDays)
    assert again is not None
    assert len(again.days) == 1


def test_the_quarantine_of_a_table_is_maintained_with_it(ops: OpsTables, path: Path) -> None:
    create_table_of(PLAIN, path)
    append(path)
    for number in range(LEAST_SMALL_FILES):
        quarantine(ops.paths, PLAIN.table, refused(number))
    found = health(ops)
    assert (found.storage, found.rewrite) == (StorageState.TO_MAINTAIN, Rewrite.NONE)
    assert "quarantine: 8 of 8 files could be joined" in found.reason
    off = health(ops, silver_spec(maintenance={"optimize": "off", **WEEK}))
    assert off.storage is StorageState.IN_ORDER
    beside = Path(str(ops.paths.quarantine(PLAIN.table)))
    (beside / "stray.parquet").write_bytes(b"12345")
    later = health(ops, silver_spec(maintenance={"optimize": "off", **WEEK}), NOW + timedelta(days=8))
    assert (later.storage, [file.path for file in later.due]) == (StorageState.TO_MAINTAIN, ["stray.parquet"])


def test_a_property_that_is_not_as_the_spec_says_is_to_be_set(ops: OpsTables, path: Path) -> None:
    create_table_of(PLAIN, path)
    assert health(ops).storage is StorageState.IN_ORDER
    set_properties(path, {"delta.enableChangeDataFeed": "false"}, "another tool")
    found = health(ops)
    assert found.storage is StorageState.TO_MAINTAIN
    assert found.reason.endswith("; not as the spec says: delta.enableChangeDataFeed")

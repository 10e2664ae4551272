"""The log of a table: when it needs a checkpoint, and which of its files nobody needs any more."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.changes.table_properties import LOG_CLEANING
from millrace.control.gates.gates import Gates
from millrace.control.ledger.erasures import ErasedTable
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import commit_versions
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.health import StorageState, TableHealth, table_health
from millrace.control.maintenance.log_files import LogHealth, clean_log, write_checkpoint
from millrace.control.maintenance.plan import planned_table
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, catalog_of, silver_spec
from tests.support.ledger.delta_tables import append, judge, load_batch, optimize, sources_reading
from tests.support.ledger.quarantine_rows import quarantine, refused
from tests.support.reading.certified_lake import ORDERS, orders, write_version

BRONZE, SILVER = bronze_spec(), silver_spec()
CATALOG = catalog_of(BRONZE, SILVER)
LOADS = 3


@pytest.fixture
def ops(tmp_path: Path) -> OpsTables:
    """A bronze table with three batches, of which the last is certified."""
    ops = OpsTables(LakehousePaths(tmp_path))
    batches = [load_batch(tmp_path, BRONZE) for _ in range(LOADS)]
    judge(tmp_path, BRONZE, batches[-1].version)
    return ops


@pytest.fixture
def path(ops: OpsTables) -> Path:
    return Path(str(ops.paths.table(BRONZE.table)))


def age(path: Path, upto: int | None = None) -> None:
    """Let all files of a log, or those of the versions up to one, be older than its retention."""
    then = time.time() - 31 * 24 * 3600
    for file in (path / "_delta_log").iterdir():
        if upto is None or (file.name[:20].isdigit() and int(file.name[:20]) <= upto):
            os.utime(file, (then, then))


def measured(ops: OpsTables) -> TableHealth:
    found = table_health(BRONZE, CATALOG, ops, datetime.now(UTC))
    assert found is not None
    return found


def log_of(ops: OpsTables) -> LogHealth:
    return measured(ops).log


def names(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "_delta_log").iterdir())


def commit_names(*versions: int) -> list[str]:
    return [f"{version:020d}.json" for version in versions]


def steps(ops: OpsTables) -> dict[str, str]:
    planned = planned_table(BRONZE, CATALOG, ops, datetime.now(UTC))
    assert planned is not None
    return {action.step.value: action.reason for action in planned.actions}


def test_a_quiet_table_gets_a_checkpoint_and_only_its_newest_version_stays(ops: OpsTables, path: Path) -> None:
    assert not log_of(ops).needs_checkpoint
    before, rows = stream_position(BRONZE, ops.paths, ops.ledger), DeltaTable(str(path)).to_pyarrow_table()
    age(path)
    for name in (f"{1:020d}.crc", f".{1:020d}.crc.crc", f".{1:020d}.json.crc", f"{LOADS:020d}.crc", "other.json"):
        (path / "_delta_log" / name).touch()
    assert steps(ops) == {"checkpoint": f"{LOADS + 1} commits since the last checkpoint"}
    assert measured(ops).storage is StorageState.TO_MAINTAIN
    write_checkpoint(path)
    assert steps(ops) == {"clean log": f"{LOADS} commits past the retention of the log"}
    clean_log(path, log_of(ops))
    newest = [f"{LOADS:020d}.{kind}" for kind in ("checkpoint.parquet", "crc", "json")]
    assert names(path) == [*newest, "_last_checkpoint", "other.json"]
    assert measured(ops).storage is StorageState.IN_ORDER
    fresh = OpsTables(ops.paths)
    assert stream_position(BRONZE, fresh.paths, fresh.ledger) == before
    assert Gates(ops.paths).certified(BRONZE.table) == LOADS
    table = DeltaTable(str(path))
    assert table.to_pyarrow_table().num_rows == rows.num_rows
    assert table.transaction_version(f"millrace/{BRONZE.table}/main") == LOADS
    assert load_batch(Path(str(ops.paths.root)), BRONZE).batch_seq == LOADS + 1


def test_a_table_with_new_commits_is_left_to_delta_until_many_lie_above_the_checkpoint(
    ops: OpsTables, path: Path
) -> None:
    write_checkpoint(path)
    append(path)
    age(path, upto=LOADS)
    log = log_of(ops)
    assert (log.expired_commits, log.is_quiet, log.needs_cleaning, log.needs_checkpoint) == (LOADS, False, False, False)


def test_expired_commits_that_say_of_erased_rows_do_not_wait_for_more(ops: OpsTables, path: Path) -> None:
    write_checkpoint(path)
    version = append(path)
    age(path, upto=LOADS)
    judge(Path(str(ops.paths.root)), BRONZE, version)
    assert not log_of(ops).needs_cleaning
    erased = ErasedTable("3f9c", "DSR-1", BRONZE.table, table_id(path), LOADS, 1, due=datetime.now(UTC))
    ops.erasures.record_table(erased, "cli")
    assert log_of(ops).needs_cleaning
    clean_log(path, log_of(ops))
    assert names(path)[1:3] == commit_names(LOADS, version)
    assert not log_of(ops).needs_cleaning


def test_many_commits_need_a_checkpoint_and_are_cleaned_though_others_follow(tmp_path: Path) -> None:
    ops, spec = OpsTables(LakehousePaths(tmp_path)), bronze_spec(delta={"delta.checkpointInterval": "2"})
    batches = [load_batch(tmp_path, BRONZE) for _ in range(LOADS)]
    path = Path(str(ops.paths.table(BRONZE.table)))
    DeltaTable(str(path)).alter.set_table_properties({"delta.checkpointInterval": "2"})
    judge(tmp_path, spec, batches[-1].version)
    assert (log_of(ops).needs_checkpoint, log_of(ops).after_checkpoint) == (True, LOADS + 2)
    append(path)
    write_checkpoint(path)
    last = append(path)
    judge(tmp_path, spec, last)
    age(path, upto=last - 1)
    log = log_of(ops)
    assert (log.expired_commits, log.is_quiet, log.needs_cleaning, log.needs_checkpoint) == (5, False, True, False)


def test_what_a_reader_or_an_open_batch_still_needs_stays(ops: OpsTables, path: Path, tmp_path: Path) -> None:
    silver = load_batch(tmp_path, SILVER, sources=sources_reading(tmp_path, bronze__orders=(None, LOADS)))
    judge(tmp_path, SILVER, silver.version)
    write_checkpoint(path)
    optimize(path)
    age(path)
    write_checkpoint(path)
    assert (log_of(ops).oldest_kept, log_of(ops).expired_commits) == (LOADS, LOADS), "the reader has version 3"
    load_batch(tmp_path, BRONZE, closed=False)
    age(path)
    write_checkpoint(path)
    assert log_of(ops).expired == []


def test_a_version_that_was_refused_keeps_the_log(ops: OpsTables, path: Path, tmp_path: Path) -> None:
    judge(tmp_path, BRONZE, load_batch(tmp_path, BRONZE).version, passed=False)
    age(path)
    write_checkpoint(path)
    later = table_health(BRONZE, CATALOG, ops, datetime.now(UTC) + timedelta(days=31))
    assert later is not None
    assert later.in_danger
    assert later.uncleaned == {}


def test_a_log_that_is_to_be_kept_stays(ops: OpsTables, path: Path) -> None:
    DeltaTable(str(path)).alter.set_table_properties({LOG_CLEANING: "false"})
    age(path)
    write_checkpoint(path)
    assert log_of(ops).expired == []


def test_a_part_of_a_checkpoint_is_no_ground_to_delete_commits(ops: OpsTables, path: Path) -> None:
    age(path)
    write_checkpoint(path)
    checkpoint = path / "_delta_log" / f"{LOADS:020d}.checkpoint.parquet"
    part = checkpoint.rename(checkpoint.with_name(f"{LOADS:020d}.checkpoint.{1:010d}.{2:010d}.parquet"))
    (path / "_delta_log" / "_last_checkpoint").unlink()
    assert log_of(ops).expired == []
    part.rename(checkpoint)
    log = log_of(ops)
    checkpoint.write_bytes(b"PAR1")
    with pytest.raises(DeltaError, match="footer"):
        clean_log(path, log)
    assert set(commit_names(*range(LOADS + 1))) <= set(names(path))


def test_the_quarantine_and_the_tombstones_have_logs_too(ops: OpsTables) -> None:
    for number in range(3):
        quarantine(ops.paths, BRONZE.table, refused(number))
    beside = Path(str(ops.paths.quarantine(BRONZE.table)))
    age(beside)
    assert steps(ops)["checkpoint"].startswith("quarantine: ")
    write_checkpoint(beside)
    found = measured(ops).uncleaned["quarantine"]
    clean_log(beside, found)
    assert names(beside)[0] == f"{DeltaTable(str(beside)).version():020d}.checkpoint.parquet"
    assert DeltaTable(str(beside)).to_pyarrow_table().num_rows == 3


def test_a_log_in_a_bucket_is_cleaned_too(bucket: Bucket, request: pytest.FixtureRequest) -> None:
    ops = OpsTables(LakehousePaths(S3Path(f"s3://{bucket.name}/{request.node.name}")))
    version = [write_version(ops.paths, orders(name)) for name in "abc"][-1]
    path, later = ops.paths.table(ORDERS), datetime.now(UTC) + timedelta(days=31)
    write_checkpoint(path)
    found = table_health(SILVER, CATALOG, ops, later)
    assert found is not None
    assert found.uncleaned[""].expired == commit_names(*range(version))
    clean_log(path, found.log)
    assert commit_versions(path) == [version]
    assert open_table(path).to_pyarrow_table()["name"].to_pylist() == ["c"]

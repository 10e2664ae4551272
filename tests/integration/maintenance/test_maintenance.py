"""OPTIMIZE and VACUUM on real Delta: fewer files and the same rows, nothing deleted that anyone still needs."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

import millrace
from embedded.clone import CLONE
from embedded.spark.server import SparkServer
from millrace.cli.runs.driver import driver_command
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import MaintenanceArgs
from millrace.contracts.lake_path import LakePath
from millrace.control.changes.table_properties import KeptFor, log_kept_for
from millrace.control.gates.gates import Gates
from millrace.control.ledger.commit_history import CommitHistory
from millrace.control.ledger.holds import HoldEvent
from millrace.control.log.delta_log import commit_actions, commit_versions, latest_version, read_commit
from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.file_layout import LEAST_SMALL_FILES
from millrace.control.maintenance.holding import hold_tables
from millrace.control.maintenance.maintained import Maintained
from millrace.control.maintenance.old_files import RETENTION_PROPERTY, OldFile, old_files, oldest_whole
from millrace.control.ops_tables import OpsTables
from millrace.control.storage.stored_files import files_below
from millrace.driver_environment import driver_environment, own_spark
from millrace.errors import ExitCode, Outcome
from millrace.settings import Settings
from millrace_spark.jobs.maintain_tables import maintain_tables
from millrace_spark.runtime.session import own_session
from races.soak.ageing import DAY_S, age
from tests.support.change_feeds import require_change_feed
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day, file_contents
from tests.support.ledger.quarantine_rows import quarantine, refused

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"
PARTITIONS = 4


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two batches through all layers, each with orders of four days, and an update of the first order."""
    by_day = {"partitioned_by": ["day"]}
    shared.specs(bronze_document(**by_day), silver_document(**by_day, zorder_by=["amount"]), gold_document())
    first, second = ([order(number + day, day, of_day=day) for day in range(1, PARTITIONS + 1)] for number in (0, 100))
    for number, rows in ((1, first), (2, [*second, order(1, 11, hour=1)])):
        for table in (BRONZE, SILVER):
            given(shared, table, rows, number)
    assert shared.run(GOLD, 2).outcome is Outcome.COMMITTED
    return shared


def files(shop: Lakehouse, table: str) -> set[str]:
    """The data files in the folder of a table, change data included."""
    path = shop.paths.table(table)
    return {file.relative_to(path).as_posix() for file in path.rglob("*.parquet") if "_delta_log" not in file.parts}


def data_files(shop: Lakehouse, version: int) -> set[str]:
    """The data files of a version of silver."""
    return set(DeltaTable(str(shop.paths.table(SILVER)), version=version).file_uris())


def due_files(shop: Lakehouse) -> Sequence[OldFile]:
    """The files of silver that are shown as due to be deleted."""
    path = shop.paths.table(SILVER)
    return old_files(path, open_table(path), files_below(path), datetime.now(UTC), timedelta(days=30)).due


def shorten_retention(shop: Lakehouse, retain: str) -> None:
    """Set the retention of silver past its spec, as somebody may do with another tool."""
    table = DeltaTable(str(shop.paths.table(SILVER)))
    table.alter.set_table_properties({RETENTION_PROPERTY: f"interval {retain}"})


def amounts(shop: Lakehouse, table: str, version: int | None) -> list[tuple[str, int]]:
    """(order, amount) of each row of a version, as another reader than Spark reads it."""
    columns = ["order_id", "amount"]
    rows = DeltaTable(str(shop.paths.table(table)), version=version).to_pyarrow_table(columns=columns).to_pylist()
    return sorted((row["order_id"], row["amount"]) for row in rows)


def aged(shop: Lakehouse, folder: Path, table: str, upto: int, days: int, *, quarantine: bool = False) -> Lakehouse:
    """The lakehouse as if versions up to `upto` of the table, or of its quarantine, had been made so many days earlier.

    A copy, since Spark keeps in mind what it has read of a log.
    """
    old = copy_lakehouse(shop, folder)
    path = Path(str(old.paths.quarantine(table) if quarantine else old.paths.table(table)))
    age(path, upto, days)
    return old


@pytest.mark.parametrize(("table", "rewrite", "downstream"), [(BRONZE, "bin-pack", SILVER), (SILVER, "z-order", GOLD)])
def test_optimize_joins_files_and_is_no_new_data_for_readers(
    shop: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, rewrite: str, downstream: str
) -> None:
    monkeypatch.setenv("LAKEHOUSE_VIEWS", str(tmp_path / "views"))
    path = shop.paths.table(table)
    rows, version, certified = amounts(shop, table, None), latest_version(path), Gates(shop.paths).certified(table)
    many = len(DeltaTable(str(path)).file_uris())
    assert many > PARTITIONS, "there is nothing to put together"
    assert certified == version
    lake = file_contents(shop.paths.root)
    dry = shop.run(table, 2, job=Job.TABLE_OPTIMIZE, dry_run=True)
    assert (dry.outcome, dry.message.partition(" it: ")[0]) == (Outcome.NO_OP, f"{table}: would {rewrite}")
    assert file_contents(shop.paths.root) == lake

    report = shop.run(table, 2, job=Job.TABLE_OPTIMIZE)

    assert (report.outcome, report.exit_code, report.version) == (Outcome.COMMITTED, ExitCode.OK, version + 1)
    assert len(DeltaTable(str(path)).file_uris()) == PARTITIONS
    removed, added = (report.details[f"numFiles{what}"] for what in ("Removed", "Added"))
    assert removed - added == many - PARTITIONS
    assert report.message == f"{table}: {removed} files became {added} ({rewrite})"
    commit = read_commit(path, version + 1)
    assert commit is not None
    assert (commit.operation, commit.changes_data, commit.txns) == ("OPTIMIZE", False, {})
    assert report.certified_version == version + 1
    views = json.loads((tmp_path / "views" / "certified.json").read_text())
    assert (views.keys(), views[table]["version"]) == ({BRONZE, SILVER, GOLD}, version + 1)
    assert amounts(shop, table, version) == amounts(shop, table, report.certified_version) == rows

    lake = file_contents(shop.paths.root)
    assert shop.run(downstream, 2).outcome == Outcome.NO_OP
    again = shop.run(table, 2, job=Job.TABLE_OPTIMIZE)
    assert (again.outcome, again.version) == (Outcome.NO_OP, version + 1), again.message
    assert file_contents(shop.paths.root) == lake, "something was written"
    assert require_change_feed(shop, table) == 2, "both batches, and no OPTIMIZE"


def test_a_quiet_table_gets_the_properties_of_its_spec_and_keeps_its_certificate(shop: Lakehouse) -> None:
    path = shop.paths.table(SILVER)
    version, rows = latest_version(path), amounts(shop, SILVER, None)
    other_system = DeltaTable(str(path)).alter
    other_system.set_table_properties({"delta.enableChangeDataFeed": "false"})
    document = silver_document(partitioned_by=["day"], zorder_by=["amount"], description="Orders")
    retain, wider = {"vacuum": {"retain": "40 days"}}, {**document["columns"], "note": {"from": "order_id"}}
    shop.specs({**document, "owner": "the shop", "maintenance": retain, "columns": wider})
    lake = file_contents(shop.paths.root)
    dry = shop.run(SILVER, 2, job=Job.TABLE_LOG, dry_run=True)
    assert dry.outcome is Outcome.NO_OP
    assert "; change delta.enableChangeDataFeed: false in the table, true in the spec; " in dry.message
    assert file_contents(shop.paths.root) == lake

    report = shop.run(SILVER, 2, job=Job.TABLE_LOG)

    assert (report.outcome, report.version) == (Outcome.COMMITTED, version + 2), report.message
    assert report.certified_version == version + 2
    table = DeltaTable(str(path))
    assert (table.protocol().min_reader_version, table.metadata().description) == (1, "Orders")
    wanted = {"delta.logRetentionDuration": "interval 40 days", "millrace.owner": "the shop"}
    assert table.metadata().configuration.items() >= {**wanted, "delta.enableChangeDataFeed": "true"}.items()
    lake = file_contents(shop.paths.root)
    again = shop.run(SILVER, 2, job=Job.TABLE_LOG)
    assert (again.outcome, again.message) == (Outcome.NO_OP, f"{SILVER}: its log is in order")
    assert shop.run(GOLD, 2).outcome is Outcome.NO_OP
    assert file_contents(shop.paths.root) == lake, "something was written; the new column comes with its statistics"
    shop.specs({**document, "maintenance": retain})
    assert shop.run(SILVER, 2, job=Job.TABLE_LOG).message == f"{SILVER}: removed millrace.owner"
    given(shop, SILVER, [order(1, 50, hour=2)], 3)
    assert shop.run(GOLD, 3).details["refresh"], "the change feed is read across these versions"
    assert amounts(shop, SILVER, version) == rows


def test_the_log_of_a_quiet_table_keeps_its_newest_version_from_which_spark_goes_on(
    shop: Lakehouse, tmp_path: Path
) -> None:
    old = copy_lakehouse(shop, tmp_path / "old")
    path, long_ago = old.paths.table(SILVER), time.time() - 31 * DAY_S
    for file in Path(str(path), "_delta_log").iterdir():
        os.utime(file, (long_ago, long_ago))
    rows, commits = amounts(old, SILVER, None), len(commit_versions(path))
    assert not list(Path(str(path), "_delta_log").glob("[0-9]*.crc")), "Delta's summary of each version has no reader"
    dry = old.run(SILVER, 2, job=Job.TABLE_LOG, dry_run=True)
    assert dry.message == f"{SILVER}: would write a checkpoint: {commits} commits since the last checkpoint"

    report = old.run(SILVER, 2, job=Job.TABLE_LOG)

    done = f"wrote a checkpoint after {commits} commits; deleted {commits - 1} expired commits"
    assert (report.outcome, report.message) == (Outcome.COMMITTED, f"{SILVER}: {done}")
    assert commit_versions(path) == [commits - 1]
    assert not [write for write in CommitHistory(old.paths).of(SILVER) if write.version is None], "no run has failed"
    assert old.run(SILVER, 2, job=Job.TABLE_LOG).outcome is Outcome.NO_OP
    old.deliver(3, "a.json", [order(1, 99, hour=3)])
    assert [each.outcome for each in old.run_all(3, BRONZE, SILVER, GOLD)] == [Outcome.COMMITTED] * 3
    assert dict(amounts(old, SILVER, None)) == {**dict(rows), "o1": 99}
    assert require_change_feed(old, SILVER) == 1, "the version that the log still has, and the one after it"


@pytest.mark.slow
def test_a_table_is_ordered_once_and_again_after_a_fifth_of_it_was_written(server: SparkServer, tmp_path: Path) -> None:
    shop = Lakehouse(tmp_path)
    orders = [order(number, number, of_day=1) for number in range(1, 1001)]
    shop.specs(bronze_document(), silver_document(zorder_by=["amount"], maintenance={"target_file_size": "4 KiB"}))
    for number, delivery in ((1, orders), (2, [order(1, 5000, hour=1)])):
        shop.deliver(number, "a.json", delivery)
        assert [report.outcome for report in shop.run_all(number, BRONZE, SILVER)] == [Outcome.COMMITTED] * 2
        due = shop.run(SILVER, number, job=Job.TABLE_OPTIMIZE, dry_run=True)
        assert due.message.startswith(f"{SILVER}: would z-order it: "), due.message
        assert shop.run(SILVER, number, job=Job.TABLE_OPTIMIZE).outcome == Outcome.COMMITTED
        in_order = shop.run(SILVER, number, job=Job.TABLE_OPTIMIZE)
        assert (in_order.outcome, in_order.details["written_share"]) == (Outcome.NO_OP, 0), in_order.message
        ranges = sorted(
            (file["min.amount"], file["max.amount"])
            for file in pa.table(DeltaTable(str(shop.paths.table(SILVER))).get_add_actions(flatten=True)).to_pylist()
        )
        assert len(ranges) > 2
        assert all(high <= low for (_, high), (low, _) in pairwise(ranges)), "each file has amounts of its own"


@pytest.mark.slow
def test_vacuum_deletes_only_what_no_version_within_the_retention_needs(shop: Lakehouse, tmp_path: Path) -> None:
    before_third = datetime.now(UTC)
    given(shop, SILVER, [order(1, 12, hour=2)], 3)
    first = read_commit(shop.paths.table(SILVER), 1)
    # Version 1 was replaced 40 days ago, and version 2, which a reader has open, 14 days ago.
    old = aged(aged(shop, tmp_path / "older", SILVER, upto=2, days=26), tmp_path / "old", SILVER, upto=3, days=14)
    shorten_retention(old, "1 hours")
    read = millrace.certified(SILVER, old.paths.root, at=before_third)
    dataset, replaced = read.dataset(), data_files(old, 2) - data_files(old, 3)
    assert (read.version, len(replaced)) == (2, 1), "version 3 replaced a file of the version that is read"
    before, due = files(old, SILVER), due_files(old)

    dry = old.run(SILVER, 3, job=Job.TABLE_VACUUM, dry_run=True)

    assert dry.outcome == Outcome.NO_OP, dry.message
    assert files(old, SILVER) == before
    report = old.run(SILVER, 3, job=Job.TABLE_VACUUM)
    deleted = before - files(old, SILVER)
    assert (report.outcome, report.exit_code) == (Outcome.COMMITTED, ExitCode.OK)
    assert deleted == {file.path for file in due}, "Delta deletes what was shown"
    kept = DeltaTable(str(old.paths.table(SILVER))).metadata().configuration[RETENTION_PROPERTY]
    assert kept == "interval 30 days", "as the spec says, before Delta deletes"
    details = {"files": len(deleted), "bytes": sum(file.size for file in due), "retain": "30 days"}
    assert dry.details == report.details == details
    assert report.message.startswith(f"silver.orders: deleted {len(deleted)} files (")
    assert first is not None
    assert len(deleted & set(first.added)) == 1, "the file that the second version replaced 40 days ago"
    assert all(file in first.added or file.startswith("_change_data/") for file in deleted)
    assert {row["order_id"]: row["amount"] for row in dataset.to_table().to_pylist()} == dict(amounts(old, SILVER, 2))
    assert [dict(amounts(old, SILVER, version))["o1"] for version in (2, 3)] == [11, 12]
    with pytest.raises(OSError, match=r"parquet|Object"):
        amounts(old, SILVER, 1)
    assert report.certified_version == report.version
    assert amounts(old, SILVER, report.certified_version) == amounts(old, SILVER, 3)
    again = old.run(SILVER, 3, job=Job.TABLE_VACUUM)
    assert (again.outcome, again.message) == (Outcome.NO_OP, "silver.orders: no file is older than the retention")
    assert not due_files(old)
    assert require_change_feed(old, SILVER) == 1, "the third batch, and nothing else since the oldest whole version"


def test_vacuum_is_refused_while_a_reader_needs_an_expiring_version_and_then_deletes_what_lost_writers_left(
    shop: Lakehouse, tmp_path: Path
) -> None:
    given(shop, BRONZE, [order(1, 12, hour=2)], 3)
    old = aged(shop, tmp_path / "old", BRONZE, upto=3, days=20)
    young, *strays = (old.paths.table(BRONZE) / f"part-{number}.parquet" for number in range(1002))
    long_ago = time.time() - 31 * DAY_S
    for stray in (young, *strays):
        stray.touch()
        if stray != young:
            os.utime(stray, (long_ago, long_ago))
    lake = file_contents(old.paths.root)
    for dry_run in (True, False):
        report = old.run(BRONZE, 3, job=Job.TABLE_VACUUM, dry_run=dry_run)
        assert (report.outcome, report.exit_code) == (Outcome.FAILED, ExitCode.FAILED)
        assert report.message.startswith(
            "bronze.orders: VACUUM refused: silver.orders (version 2) would soon be cut off"
        )
        assert "readers of the certified version" not in report.message
    assert file_contents(old.paths.root) == lake
    given(old, SILVER, [order(1, 12, hour=2)], 3)
    report = old.run(BRONZE, 3, job=Job.TABLE_VACUUM)
    assert (report.outcome, report.exit_code) == (Outcome.COMMITTED, ExitCode.OK)
    assert report.details["files"] == len(strays), "all, not the first thousand"
    assert not any(stray.exists() for stray in strays)
    assert young.exists(), "its writer may still commit it"


def test_what_a_table_keeps_for_less_than_a_week_is_deleted_only_if_a_person_allows_it_and_nobody_holds_it(
    shop: Lakehouse, tmp_path: Path
) -> None:
    given(shop, SILVER, [order(1, 12, hour=2)], 3)
    given(shop, SILVER, [order(1, 13, hour=3)], 4)
    assert shop.run(GOLD, 4).outcome is Outcome.COMMITTED
    old = aged(shop, tmp_path / "old", SILVER, upto=3, days=2)
    path, holds = old.paths.table(SILVER), OpsTables(old.paths).holds
    old.specs(silver_document(partitioned_by=["day"], maintenance={"vacuum": {"retain": "24 hours"}}))
    shorten_retention(old, "24 hours")
    before, stays = files(old, SILVER), oldest_whole(path, timedelta(hours=24), datetime.now(UTC))
    kept = old.run(SILVER, 4, job=Job.TABLE_VACUUM)
    assert (kept.outcome, kept.exit_code) == (Outcome.NO_OP, ExitCode.OK)
    assert "a person has to allow what deletes within 7 days, so that these stay: " in kept.notes[0]
    holds.record(HoldEvent.SET, "case-17", [SILVER], said_by="ann", why="court order")
    held = old.run(SILVER, 4, job=Job.TABLE_VACUUM, allow_deletes="bob")
    assert held.outcome is Outcome.FAILED
    assert held.message.startswith(f"{SILVER}: VACUUM refused: ann holds it since ")
    assert files(old, SILVER) == before
    holds.record(HoldEvent.RELEASED, "case-17", [SILVER], said_by="ann", why="closed")
    report = old.run(SILVER, 4, job=Job.TABLE_VACUUM, allow_deletes="bob")
    assert (report.outcome, report.details["allowed_by"]) == (Outcome.COMMITTED, "bob")
    assert len(before - files(old, SILVER)) == report.details["files"] > 0
    marks = [json.loads(action["commitInfo"]["userMetadata"]) for action in commit_actions(path, latest_version(path))]
    assert [mark["maintenance"]["allowed_by"] for mark in marks] == ["bob"], "the commit says who"
    assert stays == 3
    assert [is_whole(path, version) for version in range(1, 5)] == [False, False, True, True]


@pytest.mark.slow
def test_a_vacuum_that_is_killed_has_deleted_only_what_was_due_and_the_next_one_goes_on(
    shop: Lakehouse, tmp_path: Path
) -> None:
    old = aged(shop, tmp_path / "old", SILVER, upto=1, days=40)
    path, long_ago = old.paths.table(SILVER), time.time() - 31 * DAY_S
    for number in range(10_000):
        stray = path / f"part-{number}.parquet"
        stray.touch()
        os.utime(stray, (long_ago, long_ago))
    before, due = files(old, SILVER), {file.path for file in due_files(old)}
    assert len(due) >= 10_000
    # A JVM of its own, which dies with the driver.
    environment = driver_environment(os.environ, "local[1]", own_spark())
    settings = Settings(root=old.paths.root, jars=CLONE / ".jars")
    command = driver_command(settings, Job.TABLE_VACUUM.application, old.args(SILVER, 2), {})
    with subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.DEVNULL) as driver:
        try:
            all_there = len(os.listdir(path))
            while driver.poll() is None and len(os.listdir(path)) == all_there:
                time.sleep(0.005)
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
    gone = before - files(old, SILVER)
    assert 0 < len(gone) < len(due), "it was killed too late"
    assert gone <= due
    assert [is_whole(path, version) for version in (1, 2)] == [True, True]
    report = old.run(SILVER, 2, job=Job.TABLE_VACUUM)
    assert (report.outcome, report.details["files"]) == (Outcome.COMMITTED, len(due) - len(gone)), report.message
    assert before - files(old, SILVER) == due


def is_whole(path: LakePath, version: int) -> bool:
    """Whether every data file of a version exists."""
    return all(Path(uri).exists() for uri in DeltaTable(str(path), version=version).file_uris())


def test_small_files_of_a_quarantine_are_joined_and_deleted_after_the_retention(
    shop: Lakehouse, tmp_path: Path
) -> None:
    path = shop.paths.quarantine(BRONZE)
    for number in range(LEAST_SMALL_FILES):
        quarantine(shop.paths, BRONZE, refused(number))
    rows = DeltaTable(str(path)).to_pyarrow_table().num_rows
    assert rows == LEAST_SMALL_FILES
    dry = shop.run(BRONZE, 2, job=Job.TABLE_OPTIMIZE, dry_run=True)
    assert "would join the small files of its quarantine" in dry.message
    report = shop.run(BRONZE, 2, job=Job.TABLE_OPTIMIZE)
    assert f"quarantine: {LEAST_SMALL_FILES} files became 1" in report.message
    old = aged(shop, tmp_path / "old", BRONZE, latest_version(path), days=31, quarantine=True)
    path = old.paths.quarantine(BRONZE)
    vacuumed = old.run(BRONZE, 2, job=Job.TABLE_VACUUM)
    assert vacuumed.details["files"] == LEAST_SMALL_FILES, vacuumed.message
    left = [file for file in Path(str(path)).rglob("*.parquet") if "_delta_log" not in file.parts]
    assert len(left) == 1
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == rows


@pytest.mark.slow
def test_a_table_that_was_out_of_the_specs_while_vacuum_ran_says_how_it_comes_back(shop: Lakehouse) -> None:
    given(shop, SILVER, [order(1, 12, hour=2)], 3)
    gone = [shop.paths.table(SILVER) / name for name in files(shop, SILVER) if name.startswith("_change_data/")]
    assert gone, "the files from which gold would read the changes"
    for file in gone:
        file.unlink()
    report = shop.run(GOLD, 3)
    assert report.outcome is Outcome.NOT_READY, report.message
    missing = report.message.removeprefix(f"{GOLD}: a file of {SILVER} that it has to read is gone: ").split("\n")[0]
    assert missing in {file.name for file in gone}, "without its folders, which have values of partition columns"
    assert report.message.endswith(f"lakehouse rebuild {GOLD}")
    assert shop.rebuild(GOLD).exit_code is ExitCode.OK
    revenue, stored = shop.rows(GOLD, "revenue"), amounts(shop, SILVER, None)
    assert sum(amount for (amount,) in revenue) == sum(amount for _, amount in stored)


@pytest.mark.slow
@pytest.mark.parametrize("is_known", [True, False])
def test_a_rebuild_of_a_held_table_keeps_its_log(shop: Lakehouse, is_known: bool) -> None:
    hold_tables("case-17", [GOLD], said_by="ann", why="court order", run_id="test", ops=OpsTables(shop.paths))
    if not is_known:
        shutil.rmtree(str(shop.paths.ops("holds")))
    before = latest_version(shop.paths.table(GOLD))
    report = shop.rebuild(GOLD)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert latest_version(shop.paths.table(GOLD)) > before
    configuration = DeltaTable(str(shop.paths.table(GOLD))).metadata().configuration
    assert configuration["delta.enableExpiredLogCleanup"] == "false"
    assert log_kept_for(configuration) is KeptFor.HOLDS, "it says so itself, if ops.holds has lost it"


def test_a_retention_below_the_table_s_own_deletes_nothing(shop: Lakehouse, tmp_path: Path) -> None:
    old = aged(shop, tmp_path / "old", SILVER, upto=2, days=20)
    before = files(old, SILVER)
    path = old.paths.table(SILVER)
    with own_session({}) as session, pytest.raises(Exception, match="retention"):
        session.sql(f"VACUUM delta.`{path}` RETAIN 0 HOURS").collect()
    assert files(old, SILVER) == before
    old.specs(silver_document(partitioned_by=["day"], maintenance={"vacuum": {"retain": "1 hours"}}))
    old.run(SILVER, 2, job=Job.TABLE_VACUUM)
    assert files(old, SILVER) == before


def test_one_driver_does_all_actions_until_its_time_is_over(shop: Lakehouse) -> None:
    before = amounts(shop, BRONZE, None)
    assert before
    shop.specs(gold_document(maintenance={"verify": 3}))
    args = MaintenanceArgs(
        domain="shop",
        run_id="cli",
        root=shop.paths.root,
        landing=str(shop.folder / "landing"),
        tables=shop.folder / "tables",
        reports=shop.folder / "reports",
        table=(BRONZE, GOLD, GOLD),
        job=(Job.TABLE_OPTIMIZE, Job.TABLE_VERIFY, Job.TABLE_VACUUM),
        interval=day(),
        until=datetime.now(UTC) + timedelta(hours=1),
    )
    late = list(maintain_tables(args.model_copy(update={"until": datetime.now(UTC) - timedelta(seconds=1)})))
    assert {report.message.partition(": ")[2] for report in late} == {
        f"{job} is left to the next run: the time of this one is over" for job in args.job
    }
    states = OpsTables(shop.paths).states
    assert states.read(BRONZE, Maintained) is None, "its turn is still to come"
    reports = list(maintain_tables(args))
    assert [(report.table, report.job) for report in reports] == args.actions
    assert (known := states.read(BRONZE, Maintained))
    assert known.planned_at is not None
    assert reports[1].details["groups"] == 3, reports[1].message
    again = next(maintain_tables(args.model_copy(update={"table": (GOLD,), "job": (Job.TABLE_VERIFY,)})))
    assert (again.job, again.outcome) == (Job.TABLE_VERIFY, Outcome.NO_OP)
    assert again.message.endswith("were verified already")
    assert all(report.exit_code is ExitCode.OK for report in reports), [report.message for report in reports]
    assert amounts(shop, BRONZE, None) == before
    assert args.report_of(Job.TABLE_VACUUM, GOLD).exists()

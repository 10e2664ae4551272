"""Backups of small Delta tables: who reads them, what is copied back, and what is refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest
from deltalake import DeltaTable

from demo.reading import delta_reader
from embedded.servers.s3 import Bucket
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import ERASURE, BatchSources, Repair, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.maintenance.holding import hold_tables
from millrace.control.ops_tables import OpsTables
from millrace.control.repair import restoring
from millrace.errors import MillraceError, NotReadyError, RepairError
from millrace.paths import OWN, LakehousePaths
from millrace.repair.backups import MANIFEST, Backup, open_backup
from millrace.repair.restore_plan import RestorePlan
from millrace.repair.restoring import asked_copy_back
from millrace.repair.taking_backups import take_backup
from tests.support.documents.specs import bronze_spec, catalog_of
from tests.support.ledger.delta_tables import (
    append,
    clean_log,
    commit_file,
    create_table,
    file_contents,
    judge,
    load_batch,
    optimize,
)
from tests.support.ledger.quarantine_rows import quarantine, refused

SPEC = bronze_spec()
CATALOG, TABLE = catalog_of(SPEC), SPEC.table
STEPS = ("load", "load", "load and refuse", "load with refused rows", "optimize")


@pytest.fixture
def ops(tmp_path: Path) -> OpsTables:
    """An empty lakehouse."""
    return OpsTables(LakehousePaths(tmp_path / "lake"))


def root_of(ops: OpsTables) -> Path:
    return Path(str(ops.paths.root))


def load(ops: OpsTables, rows: int = 1, *, passed: bool = True) -> Winner:
    winner = load_batch(root_of(ops), SPEC, rows=rows)
    judge(root_of(ops), SPEC, winner.version, passed=passed)
    return winner


def back_up(ops: OpsTables, folder: object, version: int | None = None) -> Backup:
    return take_backup(TABLE, str(folder), ops, version=version, taken_by="ann", run_id="backup")


def plan_of(ops: OpsTables, folder: object) -> RestorePlan:
    return asked_copy_back(TABLE, str(folder), CATALOG, no_reload=False).plan(CATALOG, ops)


def copy_back(ops: OpsTables, folder: object, plan_id: str = "") -> Winner:
    asked = asked_copy_back(TABLE, str(folder), CATALOG, no_reload=False)
    decided = Repair(id=plan_id or asked.plan(CATALOG, ops).id, said_by="ann", why="a wrong delivery")
    return asked.execute(
        decided, "repair", CATALOG, ops, lakehouse_leases(ops.paths, "repair", SPEC.conflicts.wait_for_lease)
    )


def numbers(path: object, version: int | None = None) -> Counter[int]:
    return Counter(DeltaTable(str(path), version=version).to_pyarrow_table()["n"].to_pylist())


def refused_rows(path: object) -> list[str]:
    table = Path(str(path))
    return sorted(DeltaTable(str(table)).to_pyarrow_table()["row_id"].to_pylist()) if table.is_dir() else []


def lose_old_versions(path: Path) -> None:
    """Delete what the newest version does not need: old files, and the log of old versions."""
    DeltaTable(str(path)).vacuum(0, dry_run=False, enforce_retention_duration=False)
    clean_log(path, below=latest_version(path))


@pytest.mark.parametrize("seed", range(6))
def test_a_version_comes_back_from_its_backup_whatever_was_deleted_since(
    ops: OpsTables, tmp_path: Path, seed: int
) -> None:
    chance, path, beside = Random(seed), Path(str(ops.paths.table(TABLE))), Path(str(ops.paths.quarantine(TABLE)))
    backup: Backup | None = None
    steps = chance.choices(STEPS, k=9)
    taken_after = chance.randrange(2, 7)
    for number, step in enumerate(["load", "load with refused rows", *steps, "load with refused rows"]):
        if step == "optimize":
            if len(DeltaTable(str(path)).file_uris()) > 1:
                optimize(path)
        else:
            winner = load(ops, number + 1, passed=step != "load and refuse")
            if step.endswith("refused rows"):
                quarantine(ops.paths, TABLE, refused(number, "too low"), by=winner.intent)
        if number == taken_after:
            backup = back_up(ops, tmp_path / "backup")
            rows, waiting = numbers(path, ops.gates.certified(TABLE)), refused_rows(beside)
    assert backup
    if beside.is_dir() and chance.random() < 0.5 and len(DeltaTable(str(beside)).file_uris()) > 1:
        optimize(beside)
    for folder in (path, beside):
        lose_old_versions(folder)

    assert numbers(backup.folder) == rows
    read = delta_reader().sql(f"SELECT n, count(*) FROM delta_scan('{backup.folder}') GROUP BY n").fetchall()
    assert Counter(dict(read)) == rows
    plan = plan_of(ops, backup.folder)
    assert plan.rows_after == backup.manifest.rows == rows.total()
    assert plan.copied_back
    assert plan.copied_back.files > 1
    copy_back(ops, backup.folder)
    assert (numbers(path), ops.gates.certified(TABLE)) == (rows, latest_version(path))
    later = {f"r{number}" for number in range(taken_after + 1, 12)}
    assert refused_rows(beside) == [row for row in waiting if row not in later]
    assert load(ops).version == latest_version(path), "the table goes on"
    assert numbers(path) == rows + Counter([0])


@pytest.mark.parametrize("has_log", [True, False])
def test_nobody_who_was_erased_comes_back_from_an_earlier_backup(
    ops: OpsTables, tmp_path: Path, *, has_log: bool
) -> None:
    load(ops, 2)
    backup = back_up(ops, tmp_path / "backup")
    load(ops, 3)
    assert plan_of(ops, backup.folder).restores == backup.manifest.version, "it can be copied back"
    erased = load_batch(root_of(ops), SPEC, rows=1, sources=BatchSources(deletes=f"{ERASURE}DSR-1"))
    judge(root_of(ops), SPEC, erased.version)
    if not has_log:
        load(ops)
        lose_old_versions(Path(str(ops.paths.table(TABLE))))
    with pytest.raises(RepairError, match="the backup is from before the erasure DSR-1, and would bring back"):
        plan_of(ops, backup.folder)


def test_a_backup_in_a_bucket_is_one_of_a_folder(ops: OpsTables, tmp_path: Path, bucket: Bucket) -> None:
    load(ops, 2)
    load(ops, 3)
    place = f"s3://{bucket.name}/{tmp_path.name}"
    assert back_up(ops, place, 2).manifest.files == back_up(ops, tmp_path / "backup", 2).manifest.files
    load(ops, 4)
    path = Path(str(ops.paths.table(TABLE)))
    optimize(path)
    lose_old_versions(path)
    copy_back(ops, place)
    assert numbers(path) == Counter([0, 1, 0, 1, 2])


_KILLED = """
import os, signal, sys
from pathlib import Path
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from millrace.repair import taking_backups

copied, copy_file = [], taking_backups.copy_file

def copy_or_die(source, target):
    if len(copied) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    copied.append(target)
    return copy_file(source, target)

taking_backups.copy_file = copy_or_die
ops = OpsTables(LakehousePaths(Path(sys.argv[1])))
taking_backups.take_backup(sys.argv[2], sys.argv[3], ops, taken_by="ann", run_id="killed")
"""


def test_a_backup_that_was_killed_is_none_keeps_its_version_and_goes_on(ops: OpsTables, tmp_path: Path) -> None:
    for rows in (1, 2, 3):
        load(ops, rows)
    expected, folder = numbers(ops.paths.table(TABLE)), tmp_path / "backup"
    killed = subprocess.run(
        [sys.executable, "-c", _KILLED, str(ops.paths.root), TABLE, str(folder)], check=False, capture_output=True
    )
    assert killed.returncode == -9, killed.stderr
    copied = {file.name: file.stat().st_ino for file in folder.glob("*.parquet")}
    assert len(copied) == 2
    with pytest.raises(RepairError, match="has no backup"):
        open_backup(TABLE, str(folder))
    assert [hold.why for hold in OpsTables(ops.paths).holds.on(TABLE)] == ["a backup copies it"]
    ops = OpsTables(ops.paths)
    load(ops, 4)
    backup = back_up(ops, folder)
    assert backup.manifest.version == 3, "that which was begun"
    assert numbers(folder) == expected
    assert ops.holds.on(TABLE) == []
    assert {name: (folder / name).stat().st_ino for name in copied} == copied, "what was copied is not copied again"
    assert not [file for file in folder.rglob("*") if "begun" in file.name]


def test_a_copy_back_that_was_interrupted_goes_on_under_the_same_id(
    ops: OpsTables, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path(str(ops.paths.table(TABLE)))
    load(ops, 2)
    back_up(ops, tmp_path / "backup")
    load(ops, 3)
    optimize(path)
    lose_old_versions(path)
    plan = plan_of(ops, tmp_path / "backup")
    with monkeypatch.context() as patches:
        patches.setattr(restoring, "_restore", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            copy_back(ops, tmp_path / "backup", plan.id)
    again = plan_of(ops, tmp_path / "backup")
    assert plan.copied_back
    assert plan.copied_back.files > 0
    assert again.copied_back
    assert (again.copied_back.files, again.id) == (0, plan.id)
    copy_back(ops, tmp_path / "backup", plan.id)
    assert numbers(path) == Counter([0, 1])


def test_a_backup_has_a_place_of_its_own(ops: OpsTables, tmp_path: Path) -> None:
    load(ops)
    inside = root_of(ops)
    (tmp_path / "link").symlink_to(inside)
    for place in (inside / "backup", tmp_path / "link" / "backup", tmp_path):
        with pytest.raises(RepairError, match="is not apart from the lakehouse"):
            back_up(ops, place)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.txt").write_text("mine")
    with pytest.raises(RepairError, match=r"has files of something else, such as a\.txt"):
        back_up(ops, tmp_path / "notes")
    for place, cause in ((tmp_path / "notes" / "a.txt", "is a file"), ("s3:/bucket/x", "is no place in a bucket")):
        with pytest.raises(RepairError, match=cause):
            back_up(ops, place)
    (tmp_path / "torn" / OWN).mkdir(parents=True)
    (tmp_path / "torn" / OWN / "backup.begun.json").touch()
    with pytest.raises(RepairError, match="does not say which backup was begun there"):
        back_up(ops, tmp_path / "torn")
    first = back_up(ops, tmp_path / "backup")
    before = file_contents(tmp_path / "backup")
    assert back_up(ops, tmp_path / "backup") == first
    load(ops)
    with pytest.raises(RepairError, match=r"version 1 \(table .*\), not of version"):
        back_up(ops, tmp_path / "backup")
    assert file_contents(tmp_path / "backup") == before
    with pytest.raises(RepairError, match="version 0 is not certified"):
        back_up(ops, tmp_path / "other", 0)
    assert not (tmp_path / "other").exists()


def test_a_backup_that_cannot_be_taken_leaves_no_hold(ops: OpsTables, tmp_path: Path) -> None:
    load(ops)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["domainMetadata", "rowTracking"]}
    commit_file(Path(str(ops.paths.table(TABLE))), 2).write_text(json.dumps({"protocol": protocol}))
    with pytest.raises(MillraceError, match="its properties cannot be set, since it has features"):
        back_up(ops, tmp_path / "backup")
    assert ops.holds.on(TABLE) == []


def test_a_hold_that_a_complete_backup_has_left_is_released_by_the_same_command(ops: OpsTables, tmp_path: Path) -> None:
    load(ops)
    backup = back_up(ops, tmp_path / "backup")
    hold = f"backup of version 1 in {backup.folder}"  # of a driver that died right after the manifest

    def left() -> None:
        hold_tables(hold, [TABLE], said_by="ann", why="a backup copies it", run_id="killed", ops=ops)

    left()
    assert back_up(ops, tmp_path / "backup") == backup
    assert ops.holds.on(TABLE) == []
    left()
    load(ops)
    with pytest.raises(RepairError, match="not of version"):
        back_up(ops, tmp_path / "backup")
    assert ops.holds.on(TABLE) == []


def test_a_damaged_file_is_no_part_of_a_backup_and_a_damaged_backup_is_not_restored(
    ops: OpsTables, tmp_path: Path
) -> None:
    path = Path(str(ops.paths.table(TABLE)))
    load(ops, 2)
    [data] = path.glob("*.parquet")
    whole = data.read_bytes()
    data.write_bytes(whole[:-1])
    with pytest.raises(RepairError, match="is damaged: it has"):
        back_up(ops, tmp_path / "backup")
    assert not (tmp_path / "backup" / MANIFEST).exists()
    assert ops.holds.on(TABLE) == []
    data.write_bytes(whole)
    backup = back_up(ops, tmp_path / "backup")
    load(ops)
    optimize(path)
    lose_old_versions(path)
    before, log = numbers(path), commit_file(tmp_path / "backup", 1)
    log.write_bytes(log.read_bytes().replace(b"engineInfo", b"engineinfo"))
    with pytest.raises(RepairError, match="has other bytes than when the backup was taken"):
        copy_back(ops, backup.folder)
    (tmp_path / "backup" / data.name).write_bytes(whole[:-1])
    with pytest.raises(RepairError, match="1 file is missing or of another size"):
        copy_back(ops, backup.folder)
    assert numbers(path) == before


def test_a_backup_of_another_table_or_of_a_later_version_is_refused(ops: OpsTables, tmp_path: Path) -> None:
    path, folder = Path(str(ops.paths.table(TABLE))), tmp_path / "backup"
    load(ops)
    load(ops)
    back_up(ops, folder)
    with pytest.raises(RepairError, match="has the rows of version 2 already"):
        plan_of(ops, folder)
    lost = min(path.glob("*.parquet"))
    content = lost.read_bytes()
    lost.write_bytes(content[:-1])
    with pytest.raises(RepairError, match=f"needs 1 file that is gone or damaged, such as {lost.name}"):
        plan_of(ops, folder)
    lost.write_bytes(content)
    with pytest.raises(RepairError, match=r"a backup of bronze\.orders, not of silver\.orders"):
        open_backup("silver.orders", str(folder))
    commit, newest = commit_file(path, 2), commit_file(path, 3)
    own = commit.read_bytes()
    append(path)
    commit.write_bytes(own.replace(b'"rows', b'"Rows') + b"\n")
    with pytest.raises(RepairError, match="version 2 is another one than that of"):
        plan_of(ops, folder)
    commit.write_bytes(own)
    for file in sorted(path.glob("_delta_log/*"))[2:]:
        file.unlink()
    assert not newest.exists()
    with pytest.raises(RepairError, match="the table ends with version 1"):
        plan_of(ops, folder)
    shutil.rmtree(path)
    with pytest.raises(NotReadyError, match="there is no table to repair"):
        plan_of(ops, folder)
    create_table(path)
    append(path)
    with pytest.raises(RepairError, match="before a rebuild; now it is"):
        plan_of(ops, folder)

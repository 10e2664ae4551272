"""What processes leave: a tree of them, old files of runs, and a full disk."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from millrace.disk_space import disk_full_error
from millrace.errors import ExitCode
from millrace.processes import end_tree
from millrace.run_retention import delete_old_runs
from millrace.settings import Settings
from tests.support.waiting import wait_for

CHILD = "import subprocess, sys, time; subprocess.Popen([sys.executable, '-c', *sys.argv[1:]]); time.sleep(300)"
GRANDCHILD = """
import pathlib, signal, sys, time
def bye(*_):
    pathlib.Path(sys.argv[2]).write_text('cleaned up')
    sys.exit(0)
signal.signal(signal.SIGTERM, {on_term})
pathlib.Path(sys.argv[1]).touch()
time.sleep(300)
"""


def started(on_term: str, folder: Path) -> tuple[subprocess.Popen[bytes], list[psutil.Process]]:
    """Start a process whose child handles SIGTERM like this; it notes in the folder that it is ready, or cleans up."""
    code, ready = GRANDCHILD.format(on_term=on_term), folder / "ready"
    parent = subprocess.Popen([sys.executable, "-c", CHILD, code, str(ready), str(folder / "note")])
    wait_for(ready.exists)
    tree = [psutil.Process(parent.pid), *psutil.Process(parent.pid).children(recursive=True)]
    assert len(tree) == 2
    return parent, tree


def still_run(tree: list[psutil.Process]) -> list[psutil.Process]:
    return [one for one in tree if one.is_running() and one.status() != psutil.STATUS_ZOMBIE]


def test_a_grandchild_gets_the_time_to_clean_up_and_then_nothing_is_left_to_end(tmp_path: Path) -> None:
    parent, tree = started("bye", tmp_path)
    assert end_tree(parent, grace_s=10) == 2
    assert (tmp_path / "note").read_text() == "cleaned up"
    assert not still_run(tree)
    assert parent.wait(timeout=5) == -15
    assert end_tree(parent, grace_s=1) == 0


def test_a_grandchild_that_ignores_term_is_killed_after_the_grace(tmp_path: Path) -> None:
    parent, tree = started("signal.SIG_IGN", tmp_path)
    began = time.monotonic()
    end_tree(parent, grace_s=0.2)
    assert time.monotonic() - began < 5
    parent.wait(timeout=5)
    assert not still_run(tree)


def leave(folder: Path, name: str, days_ago: float) -> Path:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("said")
    then = time.time() - days_ago * 86_400
    for place in (file, *file.relative_to(folder).parents):
        os.utime(folder / place, (then, then))
    return file


def test_what_runs_left_goes_after_the_days_that_are_set_and_is_looked_for_once_a_day(tmp_path: Path) -> None:
    settings = Settings(root=tmp_path / "lake", runs=tmp_path / "runs", keep_runs_days=30)
    runs = tmp_path / "runs"
    old = [leave(runs, f"{kind}/old/deep/file", 31) for kind in ("reports", "driver_logs", "data_docs")]
    young = [leave(runs, f"{kind}/young/file", 29) for kind in ("reports", "driver_logs", "data_docs")]
    other = leave(runs, "state/bronze.a", 400)
    delete_old_runs(settings)
    assert not any(file.exists() for file in old)
    assert all(file.exists() for file in (*young, other)), "only what runs leave, and only what is old"
    assert not (runs / "reports" / "old" / "deep").exists()
    old_again = leave(runs, "reports/another", 400)
    delete_old_runs(settings)
    assert old_again.exists()
    os.utime(runs / ".swept", (0, 0))
    delete_old_runs(settings)
    assert not old_again.exists()


@pytest.mark.parametrize("happens", ["the file is gone", "the folder is gone", "the folder has a new file"])
def test_another_run_may_delete_and_write_too(happens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Settings(root=tmp_path / "lake", runs=tmp_path / "runs")
    old = leave(tmp_path / "runs", "reports/old/file", 400)
    walk = os.walk

    def list_then_change(folder: Path, **options: bool) -> Iterator[tuple[str, list[str], list[str]]]:
        for listed in walk(folder, **options):
            if listed[0] == str(old.parent):
                if happens == "the folder has a new file":
                    (old.parent / "new").touch()
                    os.utime(old.parent, (0, 0))
                else:
                    old.unlink()
                if happens == "the folder is gone":
                    old.parent.rmdir()
            yield listed

    monkeypatch.setattr(os, "walk", list_then_change)
    delete_old_runs(settings)
    assert not old.exists()
    assert (old.parent / "new").exists() == (happens == "the folder has a new file")


SPARK = "[TASK_WRITE_FAILED] Task failed while writing rows to file:{}. SQLSTATE: 58030\nCaused by: {}"
JAVA = "java.io.IOException: No space left on device"
RUST = "Failed to parse parquet: External: Unable to copy data to file: No space left on device (os error 28)"


def raised_from(error: Exception) -> Exception:
    outer = ValueError("the batch failed")
    outer.__cause__ = error
    return outer


def with_cause(error: Exception) -> Exception:
    """As classic PySpark hands it on: the message says only what was being done."""
    outer = RuntimeError("[TASK_WRITE_FAILED] Task failed while writing rows. SQLSTATE: 58030")
    outer._cause = error  # type: ignore[attr-defined]
    return outer


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
        OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
        RuntimeError(RUST),
        with_cause(with_cause(RuntimeError(JAVA))),
        raised_from(OSError(errno.ENOSPC, "full")),
    ],
)
def test_every_form_of_a_full_disk_is_told_with_the_folder_and_what_to_do(tmp_path: Path, error: Exception) -> None:
    full = disk_full_error(error, "bronze.orders", [tmp_path])
    assert full.exit_code is ExitCode.DISK_FULL
    first, *more = str(full).splitlines()
    assert first.startswith(f"bronze.orders: the disk is full: no space left for {tmp_path} (")
    assert len(more) == 1
    assert more[0].startswith("Make room there, then run the same again")


def test_the_folder_that_the_error_names_is_told_and_any_other_error_is_none(tmp_path: Path) -> None:
    folders = [tmp_path, tmp_path / "bronze" / "orders", tmp_path / "bronze_quarantine" / "orders"]
    by_connect = RuntimeError(SPARK.format(folders[2], JAVA))
    assert f"no space left for {folders[2]} (" in str(disk_full_error(by_connect, "bronze.orders", folders))
    for error in (OSError(errno.EIO, "Input/output error"), ValueError("space"), KeyError()):
        assert disk_full_error(error, "bronze.orders", [tmp_path]) is None

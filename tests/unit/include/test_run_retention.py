"""What runs leave is kept for a while, and not for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from include.run_retention import delete_old_runs
from include.settings import Settings


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
def test_another_run_may_delete_and_write_at_the_same_time(
    happens: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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

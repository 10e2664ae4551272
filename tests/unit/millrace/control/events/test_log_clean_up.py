"""Compaction, checkpoints and clean-up of a log of events, with races and dying processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from demo.reading import delta_reader
from millrace.clock import steady_now_s
from millrace.control.events import event_files, event_log
from millrace.control.events.event_log import EventLog
from millrace.control.ledger import ops_table
from millrace.control.ledger.ops_table import OpsTable
from millrace.control.storage.objects import LocalObjectStore
from millrace.errors import TornLogError
from tests.support.ledger.event_race import EVENTS, FEW, event, word_counts

TABLE, DAY_S = "silver.flights", 24 * 3600.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ops" / "events"


@pytest.fixture(autouse=True)
def few_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, number in FEW:
        monkeypatch.setattr(module, name, number)


def append(path: Path, *words: str) -> None:
    events = OpsTable(path, EVENTS)
    for word in words:
        events.append([event(TABLE, word)])


def log_of(path: Path) -> EventLog:
    return EventLog(path, ["recorded_at"], lambda: None)


def commits(path: Path) -> list[Path]:
    return sorted((path / "_delta_log").glob("*.json"))


def data_files(path: Path) -> set[str]:
    return {str(file.relative_to(path)) for file in path.rglob("table=*/*.parquet")}


def age(path: Path, seconds: float, upto: int) -> None:
    """Make the files of the log up to a version older than the others by this time."""
    for file in (path / "_delta_log").iterdir():
        if file.name[:20].isdigit() and int(file.name[:20]) <= upto:
            stamp = file.stat().st_mtime - seconds
            os.utime(file, (stamp, stamp))


def test_other_readers_find_every_event_through_the_checkpoint(path: Path) -> None:
    words = [f"{number:02d}" for number in range(40)]
    append(path, *words)
    OpsTable(path, EVENTS).append_once([event(TABLE, "once")], "key")
    log = log_of(path)
    log.files()
    log.write_checkpoint()
    newest = DeltaTable(str(path)).version()
    for file in commits(path)[:-1]:
        file.unlink()
    stored = DeltaTable(str(path))
    assert (stored.version(), stored.transaction_version("key")) == (newest, 1)
    assert stored.metadata().partition_columns == ["table"]
    assert sorted(stored.to_pyarrow_table()["word"].to_pylist()) == [*words, "once"]
    read = delta_reader().sql(f"SELECT word, \"table\" FROM delta_scan('{path}') ORDER BY word").fetchall()
    assert read == [(word, TABLE) for word in (*words, "once")]
    assert word_counts(path, TABLE).keys() == {*words, "once"}
    assert not OpsTable(path, EVENTS).append_once([event(TABLE, "twice")], "key")
    stored.optimize.compact()
    assert word_counts(path, TABLE).total() == 41, "delta-rs writes on top of our checkpoint"


def test_one_of_two_writers_replaces_the_same_files_and_the_other_leaves_no_files(path: Path) -> None:
    append(path, "a", "b", "c")
    first, second, events = log_of(path), log_of(path), OpsTable(path, EVENTS)
    both = [(log, log.files()) for log in (first, second)]
    events.append([event(TABLE, "d")])
    rows = DeltaTable(str(path), version=3).to_pyarrow_table()
    assert [log.replace(files, rows) for log, files in both] == [5, None]
    assert data_files(path) >= {file.name for file in first.files()}
    assert len(data_files(path)) == 5, "four that were appended, and one that replaces three of them"
    assert dict(word_counts(path, TABLE)) == dict.fromkeys("abcd", 1)


def test_replaced_files_are_deleted_after_a_commit_that_is_new_enough(path: Path) -> None:
    append(path, *"abcdefgh")
    log, hour = log_of(path), timedelta(hours=1)
    assert len(data_files(path)) > len(log.files()), "nothing was replaced"
    age(path, DAY_S, upto=8)
    before = data_files(path)
    log.clean_up(timedelta(days=2))
    assert data_files(path) == before
    age(path, DAY_S, upto=9)
    log.clean_up(hour)
    assert data_files(path) == before, "no commit came since that would tell how old the newest one is"
    append(path, "i")
    live = {file.name for file in log.files()}
    log.clean_up(hour)
    assert data_files(path) == live
    assert dict(word_counts(path, TABLE)) == dict.fromkeys("abcdefghi", 1)


def test_only_commits_before_an_old_checkpoint_are_deleted(path: Path) -> None:
    words = [f"{number:02d}" for number in range(24)]
    append(path, *words[:-1])
    log = log_of(path)
    slow = OpsTable(path, EVENTS)
    assert len(slow.events(TABLE)) == 23
    newest = DeltaTable(str(path)).version()
    age(path, DAY_S, upto=newest - 1)
    log.files()
    log.clean_up(timedelta(hours=1))
    versions = [int(file.name[:20]) for file in commits(path)]
    assert versions == list(range(versions[0], newest + 1))
    assert 0 < versions[0] <= newest - 6
    assert (path / "_delta_log" / f"{versions[0]:020d}.checkpoint.parquet").exists()
    append(path, words[-1])
    assert [one["word"] for one in slow.events(TABLE)] == words
    assert dict(word_counts(path, TABLE)) == dict.fromkeys(words, 1)


@pytest.mark.parametrize("how", ["append", "append_once", "compact"])
def test_a_writer_that_was_stopped_during_a_clean_up_loses_and_doubles_nothing(
    path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    append(path, *"abcd")
    slow, words = OpsTable(path, EVENTS), [f"{number:02d}" for number in range(24)]
    assert len(slow.events(TABLE)) == 4
    slow.append([event("silver.other", "x")])
    put, now_s, taken = slow._log._objects.put_if_absent, [steady_now_s()], list[int]()

    def stopped_before(key: str, body: bytes) -> str:
        if key.endswith(".json") and not taken:
            taken.append(int(key[:20]))
            append(path, *words)
            log = log_of(path)
            age(path, DAY_S, upto=len(log.files()) and log._state.version - 1)
            log.clean_up(timedelta(hours=1))
            assert taken[0] < int(commits(path)[0].name[:20]), "the place is free again"
            now_s.append(now_s[0] + DAY_S)
        return put(key, body)

    monkeypatch.setattr(slow._log._objects, "put_if_absent", stopped_before)
    monkeypatch.setattr(event_log, "steady_now_s", lambda: now_s[-1])
    if how == "append":
        slow.append([event(TABLE, "slow")])
    elif how == "append_once":
        assert slow.append_once([event(TABLE, "slow")], "key")
    else:
        monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 1)
        slow.compact(TABLE)
        slow._log.clean_up(timedelta(0))
    assert taken
    slow_words = [] if how == "compact" else ["slow"]
    assert dict(word_counts(path, TABLE)) == dict.fromkeys([*"abcd", *words, *slow_words], 1)
    assert sorted(one["word"] for one in slow.events(TABLE)) == sorted([*"abcd", *words, *slow_words])
    versions = [int(file.name[:20]) for file in commits(path)]
    assert versions == list(range(versions[0], versions[-1] + 1)), "nothing lies below the log"


@pytest.mark.parametrize("hours", [-24 * 400, 24 * 400])
def test_a_wrong_clock_makes_no_file_old(path: Path, hours: int, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = OpsTable(path, EVENTS)
    append(path, *"abc")
    log = log_of(path)
    listed, now_ms = log.files(), event_files.now_ms
    with monkeypatch.context() as wrong:
        for module in (event_files, event_log):
            wrong.setattr(module, "now_ms", lambda: now_ms() + hours * 3600 * 1000)
        append(path, *(f"{number:02d}" for number in range(20)))
    assert len(log.files()) < 20
    assert all(file.path.exists() for file in listed), "they were replaced a moment ago, whatever was written down"
    assert len(commits(path)) == log._state.version + 1
    assert len(reader.events(TABLE)) == 23


@pytest.mark.parametrize(("at", "torn"), [(-2, None), (-1, ""), (-1, '{"commitInfo":{"times')])
def test_the_error_names_a_missing_or_torn_commit_at_each_read_and_its_repair_restores_all_events(
    path: Path, at: int, torn: str | None
) -> None:
    append(path, *"abc")
    damaged = commits(path)[at]
    whole = damaged.read_text()
    if torn is None:
        damaged.unlink()
    else:
        damaged.write_text(torn)
    events = OpsTable(path, EVENTS)
    for reader in (events, events, OpsTable(path, EVENTS)):
        message = rf"{damaged.name} is missing or cannot be read.*\nRestore it from a backup"
        with pytest.raises(TornLogError, match=message):
            reader.events(TABLE)
    append(path, *"defghij")
    with pytest.raises(TornLogError, match=damaged.name):
        OpsTable(path, EVENTS).events(TABLE)
    with pytest.raises(TornLogError, match=damaged.name):
        OpsTable(path, EVENTS).append_once([event(TABLE, "once")], "key")
    assert damaged.exists() == (torn is not None), "no later event takes its place"
    damaged.write_text(whole)
    assert dict(word_counts(path, TABLE)) == dict.fromkeys("abcdefghij", 1)


class _Death(BaseException):
    """The process ends here."""


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int, bool], None]]:
    """Let the process die at its n-th write, before or after it."""
    left: list[tuple[Iterator[int], int, bool]] = []

    def wrapped(write: Callable[..., Any]) -> Callable[..., Any]:
        def dies(*args: Any) -> Any:
            number, (_, at, is_done) = next(left[-1][0]), left[-1]
            if number == at and not is_done:
                raise _Death
            done = write(*args)
            if number == at:
                raise _Death
            return done

        return dies

    with monkeypatch.context() as patched:
        patched.setattr(LocalObjectStore, "put_if_absent", wrapped(LocalObjectStore.put_if_absent))
        for name in ("delete_files", "replace_file"):
            patched.setattr(event_log, name, wrapped(getattr(event_log, name)))
        yield lambda at, is_done: left.append((count(), at, is_done))


def test_a_process_that_dies_before_or_after_any_write_loses_and_doubles_nothing(
    path: Path, dying: Callable[[int, bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops_table, "_KEEP_REPLACED", timedelta(0))
    deaths, sure, tried = 0, set[str](), set[str]()
    for at in range(24):
        dying(at, at // 2 % 2 == 1)
        events = OpsTable(path, EVENTS)
        try:
            for number in range(8):
                word = f"{at}-{number}"
                tried.add(word)
                events.append([event(TABLE, word)])
                sure.add(word)
        except _Death:
            deaths += 1
        dying(-1, False)
        found = word_counts(path, TABLE)
        assert set(found.values()) <= {1}
        assert sure <= found.keys() <= tried
    assert deaths > 15
    stored = DeltaTable(str(path))
    assert stored.to_pyarrow_table().num_rows == word_counts(path, TABLE).total()
    assert json.loads((path / "_delta_log" / "_last_checkpoint").read_text())["version"] > stored.version() - 20
    assert len(list(path.rglob("*.parquet"))) < 30, "data files and checkpoints"

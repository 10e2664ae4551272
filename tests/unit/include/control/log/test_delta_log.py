"""The reading of a Delta log in plain Python."""

from __future__ import annotations

import json
import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given

from include.control.log.delta_log import (
    EPOCH_START,
    Commit,
    commits_after,
    commits_still_known,
    latest_version,
    read_commit,
)
from include.errors import TornLogError
from tests.support.ledger.delta_tables import (
    FLIGHTS,
    append,
    clean_log,
    commit,
    commit_file,
    create_table,
    delete_all,
    intent_of,
    optimize,
    set_property,
)
from tests.support.storage.log_growth import grow
from tests.support.texts import texts

OTHERS_METADATA = [
    "a note of someone else",
    "[1, 2]",
    '"text"',
    "{}",
    '{"millrace": "text"}',
    '{"other": {"a": 1}}',
    "",
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    create_table(tmp_path / "flights")
    return tmp_path / "flights"


def write_commit(table: Path, version: int, *actions: dict[str, object]) -> Commit:
    """A commit file as another writer may leave it."""
    file = commit_file(table, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    found = read_commit(table, version)
    assert found is not None
    return found


def test_a_batch_says_number_token_time_and_files(table: Path) -> None:
    intent = intent_of("id", 3)
    version = commit(table, intent, rows=5).version
    found = read_commit(table, version)
    assert found is not None
    assert (found.version, found.operation, found.txns) == (1, "WRITE", {FLIGHTS.app_id: 3})
    assert found.metadata["token"] == intent.token
    assert found.changes_data
    assert abs(datetime.now(UTC) - found.at) < timedelta(minutes=10)
    assert [table / name for name in found.added] == list(table.glob("*.parquet"))


@given(texts())
def test_a_commit_is_read_whatever_the_table_holds(name: str) -> None:
    """The log holds the least and the greatest value of each file, as they are."""
    with TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({name or "n": [name], "other": [1]}))
        found = read_commit(Path(folder), 0)
    assert found is not None
    assert (found.operation, len(found.added), found.changes_data) == ("WRITE", 1, True)


def test_putting_files_together_changes_no_data_and_carries_no_number(table: Path) -> None:
    append(table)
    append(table)
    found = read_commit(table, optimize(table, intent_of("id").user_metadata()))
    assert found is not None
    assert (found.operation, found.changes_data, found.txns) == ("OPTIMIZE", False, {})
    assert found.metadata
    assert found.added


def test_a_change_of_properties_changes_no_data(table: Path) -> None:
    found = read_commit(table, set_property(table))
    assert found is not None
    assert not found.changes_data


def test_a_delete_changes_data_though_it_adds_no_file(table: Path) -> None:
    append(table)
    found = read_commit(table, delete_all(table))
    assert found is not None
    assert (found.added, found.changes_data) == ((), True)


@pytest.mark.parametrize("text", OTHERS_METADATA)
def test_what_others_put_into_user_metadata_is_none_of_our_business(table: Path, text: str) -> None:
    found = read_commit(table, append(table, user_metadata=text))
    assert found is not None
    assert (found.metadata, found.changes_data) == ({}, True)


def test_a_commit_without_information_is_read_all_the_same(tmp_path: Path) -> None:
    found = write_commit(tmp_path, 0, {"add": {"path": "day=a%20b/part%2B1.parquet"}}, {"unknown": {}})
    assert found == Commit(0, at=EPOCH_START, added=("day=a b/part+1.parquet",), changes_data=True)


def test_numbers_of_several_applications_are_told_apart(tmp_path: Path) -> None:
    found = write_commit(tmp_path, 0, {"txn": {"appId": "a", "version": 1}}, {"txn": {"appId": "b", "version": 9}})
    assert found.txns == {"a": 1, "b": 9}


def test_the_metrics_of_a_commit_are_those_of_delta(tmp_path: Path) -> None:
    metrics = {"numTargetRowsInserted": "3"}
    found = write_commit(tmp_path, 0, {"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}})
    assert (found.operation, found.metrics) == ("MERGE", metrics)


def test_there_is_no_commit_above_the_newest(table: Path) -> None:
    assert latest_version(table) == 0
    assert read_commit(table, 1) is None
    assert list(commits_after(table, 0)) == []
    assert list(commits_after(table, 5)) == []


def test_a_folder_without_a_log_has_no_version(tmp_path: Path) -> None:
    assert latest_version(tmp_path) == -1
    assert list(commits_after(tmp_path, -1)) == []


def test_commits_come_upward_from_the_one_above(table: Path) -> None:
    for _ in range(11):
        append(table)
    assert [found.version for found in commits_after(table, -1)] == list(range(12))
    assert [found.version for found in commits_after(table, 8)] == [9, 10, 11]


def test_only_commit_files_count_as_versions(table: Path) -> None:
    append(table)
    DeltaTable(str(table)).create_checkpoint()
    log = table / "_delta_log"
    for name in (f"{7:020d}.crc", f".{7:020d}.json.crc", f"{7:020d}.{9:020d}.compacted.json", "x" * 20 + ".json"):
        (log / name).write_text("{}")
    assert len(list(log.iterdir())) >= 8
    assert latest_version(table) == 1


def test_a_gap_in_the_log_names_the_missing_file(table: Path) -> None:
    for _ in range(4):
        append(table)
    commit_file(table, 2).unlink()
    commits = commits_after(table, 0)
    assert next(commits).version == 1
    with pytest.raises(TornLogError) as raised:
        next(commits)
    said = str(raised.value)
    assert "has no commit 2, but has 4" in said
    assert "Do not write" in said
    assert f"{commit_file(table, 2)} from a backup" in said


def test_a_log_cleaned_below_is_read_from_where_it_begins(table: Path) -> None:
    for _ in range(4):
        append(table)
    clean_log(table, below=3)
    assert [found.version for found in commits_after(table, 2)] == [3, 4]
    with pytest.raises(TornLogError, match="has no commit 2, but has 4"):
        list(commits_after(table, 1))


def test_who_needs_no_complete_history_reads_what_the_log_still_has(table: Path) -> None:
    assert [found.version for found in commits_still_known(table, None)] == [0]
    for _ in range(4):
        append(table)
    clean_log(table, below=3)
    assert [found.version for found in commits_still_known(table, None)] == [3, 4]
    assert [found.version for found in commits_still_known(table, 3)] == [4]
    assert list(commits_still_known(table.with_name("nowhere"), None)) == []


def test_a_log_that_grows_while_it_is_read_is_not_taken_for_torn(tmp_path: Path) -> None:
    last, seen = 1500, -1
    writer = multiprocessing.get_context("spawn").Process(target=grow, args=(tmp_path, last))
    writer.start()
    try:
        readings = 0
        while seen < last:
            for found in commits_after(tmp_path, seen):
                assert found.version == seen + 1
                seen = found.version
            readings += 1
            assert writer.is_alive() or latest_version(tmp_path) == last, "the writer did not get to its end"
    finally:
        writer.kill()
        writer.join()
    assert readings > 10, "the reader never overlapped the writer"

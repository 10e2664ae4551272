"""Delta logs are read without Spark; the winner of a race is the commit that Delta's error quotes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings

from millrace.contracts.job.contention import LostRace
from millrace.control.log.delta_log import (
    EPOCH_START,
    Commit,
    commit_mark,
    commits_after,
    find_lost_race,
    latest_version,
    newest_change,
    read_commit,
    remaining_commits,
)
from millrace.errors import TornLogError
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
from tests.support.texts import texts

OTHERS_METADATA = ["a note of someone else", "[1, 2]", '{"millrace": "text"}', '{"other": {"a": 1}}', ""]


def commit_at(table: Path, version: int) -> Commit:
    result = read_commit(table, version)
    assert result is not None
    return result


def write_commit(table: Path, version: int, *actions: dict[str, object]) -> Commit:
    """Write a commit file as another system may write it, and return the commit."""
    file = commit_file(table, version)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(json.dumps(action) for action in actions) + "\n")
    return commit_at(table, version)


def test_the_commit_of_a_batch_has_number_token_time_and_files(table: Path) -> None:
    intent = intent_of("id", 3)
    version = commit(table, intent, rows=5).version
    result = commit_at(table, version)
    assert (result.version, result.operation, result.txns) == (1, "WRITE", {FLIGHTS.app_id: 3})
    assert result.metadata["token"] == intent.token
    assert result.changes_data
    assert abs(datetime.now(UTC) - result.at) < timedelta(minutes=10)
    assert [table / name for name in result.added] == list(table.glob("*.parquet"))


@settings(max_examples=20)
@given(texts())
def test_a_commit_is_read_with_any_text_in_the_table(name: str) -> None:
    """The log holds the unescaped minimum and maximum of each file."""
    with TemporaryDirectory() as folder:
        write_deltalake(folder, pa.table({name or "n": [name], "other": [1]}))
        result = commit_at(Path(folder), 0)
    assert (result.operation, len(result.added), result.changes_data) == ("WRITE", 1, True)


def test_only_commits_that_add_or_remove_rows_change_data_and_the_newest_of_them_is_found(table: Path) -> None:
    assert newest_change(table.with_name("nowhere")) == -1
    assert newest_change(table) == 0
    append(table)
    append(table)
    assert not commit_at(table, set_property(table)).changes_data
    optimized = commit_at(table, optimize(table, intent_of("id").user_metadata()))
    assert (optimized.operation, optimized.changes_data, optimized.txns) == ("OPTIMIZE", False, {})
    assert optimized.metadata
    assert optimized.added
    assert (optimized.version, newest_change(table)) == (4, 2)
    deleted = commit_at(table, delete_all(table))
    assert (deleted.added, deleted.changes_data, newest_change(table)) == ((), True, deleted.version)
    clean_log(table, below=set_property(table))
    assert newest_change(table) == latest_version(table) == 6, "no commit that remains has changed rows"


def test_user_metadata_of_other_systems_is_ignored(table: Path) -> None:
    for text in OTHERS_METADATA:
        result = commit_at(table, append(table, user_metadata=text))
        assert (result.metadata, result.changes_data) == ({}, True), text


DAMAGED = [b"", b"\xff\xfe", b'{"commitInfo"', b"7", b"[1]", b'{"add": {}}', b'{"add": []}', b'{"commitInfo": 3}']


def test_a_damaged_commit_is_named_and_never_taken_for_one_that_changes_nothing(table: Path) -> None:
    file = commit_file(table, append(table))
    for content in DAMAGED:
        file.write_bytes(content)
        with pytest.raises(TornLogError, match=f"{file.name} cannot be read"):
            read_commit(table, int(file.stem))
        assert commit_mark(table, int(file.stem))


def test_a_commit_has_the_numbers_of_each_application_and_the_metrics_of_delta_if_they_are_there(
    tmp_path: Path,
) -> None:
    metrics = {"numTargetRowsInserted": "3"}
    info = {"commitInfo": {"operation": "MERGE", "operationMetrics": metrics}}
    numbers = ({"txn": {"appId": name, "version": number}} for name, number in (("a", 1), ("b", 9)))
    result = write_commit(tmp_path, 0, info, *numbers)
    assert (result.operation, result.metrics, result.txns) == ("MERGE", metrics, {"a": 1, "b": 9})
    bare = write_commit(tmp_path, 0, {"add": {"path": "day=a%20b/part%2B1.parquet"}}, {"unknown": {}})
    assert bare == Commit(0, at=EPOCH_START, added=("day=a b/part+1.parquet",), changes_data=True)


def test_commits_are_those_of_the_commit_files_in_ascending_order(table: Path) -> None:
    for _ in range(11):
        append(table)
    DeltaTable(str(table)).create_checkpoint()
    for name in (f"{17:020d}.crc", f".{17:020d}.json.crc", f"{17:020d}.{19:020d}.compacted.json", "x" * 20 + ".json"):
        (table / "_delta_log" / name).write_text("{}")
    assert latest_version(table) == 11
    assert [result.version for result in commits_after(table, -1)] == list(range(12))
    assert [result.version for result in commits_after(table, 8)] == [9, 10, 11]
    assert read_commit(table, 12) is None
    assert [list(commits_after(table, above)) for above in (11, 15)] == [[], []]
    nowhere = table.with_name("nowhere")
    assert (latest_version(nowhere), list(commits_after(nowhere, -1))) == (-1, [])
    assert list(remaining_commits(nowhere, None)) == []


def test_a_gap_in_the_log_names_the_missing_file_unless_it_is_below_what_is_read(table: Path) -> None:
    assert [result.version for result in remaining_commits(table, None)] == [0]
    for _ in range(4):
        append(table)
    missing = commit_file(table, 2).rename(table / "elsewhere")
    commits = commits_after(table, 0)
    assert next(commits).version == 1
    way_out = f"\nDo not write; restore {commit_file(table, 2)} from a backup"
    with pytest.raises(TornLogError, match=f"has no commit 2, but has 4: .*{way_out}"):
        next(commits)
    missing.rename(commit_file(table, 2))
    clean_log(table, below=3)
    assert [result.version for result in commits_after(table, 2)] == [3, 4]
    with pytest.raises(TornLogError, match="has no commit 2, but has 4"):
        list(commits_after(table, 1))
    assert [result.version for result in remaining_commits(table, None)] == [3, 4]
    assert [result.version for result in remaining_commits(table, 3)] == [4]


def write_commits(table: Path, last: int) -> None:
    """Write the commits 0 to `last`, each of them atomically, as every log store does."""
    for version in range(last + 1):
        unfinished = table / "_delta_log" / f".{version}"
        unfinished.write_text('{"commitInfo": {"operation": "WRITE"}}\n')
        unfinished.rename(commit_file(table, version))


def test_a_log_that_grows_while_it_is_read_is_not_torn(tmp_path: Path) -> None:
    last, seen, readings = 400, -1, 0
    (tmp_path / "_delta_log").mkdir()
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(write_commits, tmp_path, last)
        while seen < last and not (written.done() and written.exception()):
            for result in commits_after(tmp_path, seen):
                assert result.version == seen + 1
                seen = result.version
            readings += 1
    assert seen == last, written.exception()
    assert readings > 10, "the reader never overlapped the writer"


KIND = "ConcurrentAppendException"


@pytest.fixture
def raced(tmp_path: Path) -> Path:
    """Return a table with three commits: a batch, maintenance, and another system's."""
    create_table(tmp_path)
    append(tmp_path, user_metadata=intent_of("id", 1).user_metadata())
    append(tmp_path, user_metadata=json.dumps({"maintenance": {"run_id": "scheduled__2", "token": "t"}}))
    append(tmp_path, user_metadata="not of ours")
    return tmp_path


def quoted(table: Path, version: int, **more: object) -> str:
    """Return an error message that quotes the commit, as Delta's messages do."""
    actions = map(json.loads, commit_file(table, version).read_text().splitlines())
    info = next(action["commitInfo"] for action in actions if "commitInfo" in action)
    said = {name: info[name] for name in ("timestamp", "operation")} | more
    return (
        "[DELTA_METADATA_CHANGED] a column was added.\n"
        f"Conflicting commit: {json.dumps(said)}\nRefer to https://docs.delta.io for more details."
    )


def test_the_lost_race_names_the_run_of_the_winner_if_the_error_quotes_its_commit(raced: Path) -> None:
    for version, run_id in ((1, "run-1"), (2, "scheduled__2"), (3, "")):
        found = find_lost_race(KIND, quoted(raced, version), raced, after=version - 1)
        assert found == LostRace(conflict=KIND, operation="WRITE", run_id=run_id, version=version)
    for message in ("", "[DELTA_CONCURRENT_APPEND] files were added"):
        assert find_lost_race(KIND, message, raced, after=0) == LostRace(conflict=KIND)


def test_the_id_of_the_commit_decides_if_there_is_one(raced: Path) -> None:
    path = commit_file(raced, 2)
    path.write_text(path.read_text().replace('"commitInfo":{', '"commitInfo":{"txnId":"a-b-c",', 1))
    assert find_lost_race(KIND, quoted(raced, 3, txnId="a-b-c"), raced, after=0).version == 2
    assert find_lost_race(KIND, quoted(raced, 3, txnId="of-none"), raced, after=0) == LostRace(conflict=KIND)

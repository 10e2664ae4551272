"""Tables that delta-rs opens: those that are followed, SQL queries, and the bounds of files."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError
from hypothesis import given, settings
from hypothesis import strategies as st

from embedded.servers.s3 import Bucket
from millrace.contracts.lake_path import S3Path
from millrace.control.log.file_bounds import FileBounds, file_bounds
from millrace.control.log.followed_tables import FollowedTable, LoggedFile, newest_table, table_at
from millrace.control.log.table_queries import identifiers, query, text_literals, timestamp_literal
from millrace.control.storage.s3_access import delta_rs_options
from millrace.control.storage.stored_files import delete_files
from tests.support import texts as drawn
from tests.support.ledger.delta_tables import ROWS, append, commit_file, create_table


def rows_at(table: Path, version: int) -> int:
    return sum(file.rows or 0 for file in table_at(table, version).files.values())


def test_another_table_at_the_same_path_is_noticed(table: Path) -> None:
    for _ in range(3):
        append(table)
    first, rows = newest_table(table).table_id, rows_at(table, 3)
    shutil.rmtree(table)
    with pytest.raises(TableNotFoundError):
        newest_table(table)
    create_table(table)
    for _ in range(4):
        append(table, 10)
    assert newest_table(table).table_id != first
    assert rows_at(table, 3) != rows
    assert rows_at(table, 3) == DeltaTable(str(table), version=3).count()


def test_a_transaction_is_found_in_a_bucket_after_the_log_was_cleaned_up(bucket: Bucket) -> None:
    path, options = S3Path(f"s3://{bucket.name}/followed/flights"), delta_rs_options()
    DeltaTable.create(str(path), ROWS, storage_options=options)
    for app_id, number in (("early", 7), ("late", 1), ("late", 2)):
        properties = CommitProperties(app_transactions=[Transaction(app_id, number)])
        rows = pa.table({"n": [number]}, schema=ROWS)
        write_deltalake(str(path), rows, mode="append", commit_properties=properties, storage_options=options)
        newest_table(path)
    DeltaTable(str(path), storage_options=options).create_checkpoint()
    delete_files(path / "_delta_log", [f"{version:020d}.json" for version in range(3)])
    newest = newest_table(path)
    numbers = [newest.transaction_version(app_id) for app_id in ("early", "late", "never")]
    assert (newest.version, numbers, len(newest.files)) == (3, [7, 2, None], 3)


def test_a_file_may_have_any_statistics(table: Path) -> None:
    newest_table(table)
    given = ["null", "no JSON", '{"nullCount": null}', '{"numRecords": 3}', None]
    for version, statistics in enumerate(given, start=1):
        facts = {"path": str(version), "partitionValues": {}, "size": 7, "modificationTime": 0, "dataChange": True}
        commit_file(table, version).write_text(json.dumps({"add": {**facts, "stats": statistics}}))
    files = {str(version): LoggedFile(7, rows=3 if version == 4 else None, unset=None) for version in range(1, 6)}
    assert newest_table(table).files == files


PLACES = ("x y%", "ü/1", "a=b#?", "+%20")
STEPS = st.one_of(
    st.tuples(st.just("append"), st.lists(st.sampled_from(PLACES), min_size=1, max_size=3)),
    st.tuples(st.just("delete"), st.sampled_from(PLACES)),
    st.sampled_from(
        [("compact", None), ("restore", None), ("property", None), ("replace", None), ("checkpoint", None)]
    ),
)


def take_step(path: str, kind: str, places: Any, number: int) -> None:
    table = DeltaTable(path)
    rows = pa.table({"n": [number] * len(places or ""), "_rescued": [None] * len(places or ""), "place": places or []})
    match kind:
        case "append":
            properties = CommitProperties(app_transactions=[Transaction("numbers", number)])
            rows = rows.cast(pa.schema(table.schema()))
            write_deltalake(path, rows, mode="append", commit_properties=properties)
        case "delete":
            table.delete(f"place = '{places}'")
        case "compact":
            table.optimize.compact()
        case "restore" if table.version():
            table.restore(max(table.version() - 2, 0))
        case "property":
            table.alter.set_table_properties({"owner": str(number)}, raise_if_not_exists=False)
        case "replace":
            write_deltalake(path, table.to_pyarrow_table(), mode="overwrite")
        case "checkpoint":
            table.create_checkpoint()


def facts(table: FollowedTable) -> tuple[Any, ...]:
    owner = table.definition.metadata().configuration.get("owner")
    return table.version, table.mark, table.table_id, owner, table.transaction_version("numbers"), table.files


@settings(max_examples=12)
@given(steps=st.lists(STEPS, min_size=3, max_size=8))
def test_a_followed_table_equals_a_table_that_is_opened_anew(
    steps: list[tuple[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("followed")
    schema = pa.schema([("n", pa.int64()), ("_rescued", pa.string()), ("place", pa.string())])
    DeltaTable.create(str(path), schema, partition_by=["place"])
    before = {0: facts(newest_table(path))}
    for number, (kind, places) in enumerate(steps, start=1):
        take_step(str(path), kind, places, number)
        followed, delta = newest_table(path), DeltaTable(str(path))
        opened = FollowedTable(path, delta, delta.version(), followed.mark)
        assert facts(followed) == facts(opened)
        assert pa.table(delta.get_add_actions()).num_rows == len(followed.files)
        before[followed.version] = facts(followed)
    assert {version: facts(table_at(path, version))[-1] for version in before} == {
        version: fact[-1] for version, fact in before.items()
    }


NOON = datetime(2013, 1, 1, 12, tzinfo=UTC)


@settings(max_examples=15)
@given(st.lists(drawn.texts(), min_size=1, unique=True), drawn.texts(without="\0", min_size=1))
def test_texts_and_names_may_contain_any_character(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], name: str
) -> None:
    table = DeltaTable(_written(tmp_path_factory, pa.table({name: values})))
    texts = values[: len(values) // 2 + 1]
    column = identifiers([name])
    rows = query(table, f"SELECT {column} FROM stored WHERE {column} IN ({text_literals(texts)})")
    assert sorted(row[name] for row in rows) == sorted(texts)


def test_times_are_compared_with_microseconds(tmp_path_factory: pytest.TempPathFactory) -> None:
    at = [NOON, NOON + timedelta(microseconds=1)]
    table = DeltaTable(_written(tmp_path_factory, pa.table({"at": pa.array(at, pa.timestamp("us", tz="UTC"))})))
    assert query(table, f"SELECT at FROM stored WHERE at < {timestamp_literal(at[1])}") == [{"at": NOON}]
    assert query(table, f"SELECT at FROM stored WHERE at = {timestamp_literal(at[1])}") == [{"at": at[1]}]


def write(path: Path, *numbers: int | None) -> None:
    rows = {"n": pa.array(numbers, pa.int64()), "day": [date(2013, 1, 1)] * len(numbers), "flag": [True] * len(numbers)}
    write_deltalake(str(path), pa.table(rows), mode="append")


def test_each_file_has_its_extremes_in_the_version_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, 2**60 + 1, -7)
    write(tmp_path, 4, None)
    write(tmp_path, None)
    write(tmp_path, 9)
    assert file_bounds(tmp_path, 2, "n") == FileBounds(frozenset({-7, 4}), frozenset({2**60 + 1, 4}))
    assert file_bounds(tmp_path, 2, "day").least == {date(2013, 1, 1)}
    assert file_bounds(tmp_path, 2, "missing") == FileBounds()


def test_a_table_with_deletion_vectors_has_none(tmp_path: Path) -> None:
    write(tmp_path, 1)
    features = {"readerFeatures": ["deletionVectors"], "writerFeatures": ["deletionVectors"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (tmp_path / "_delta_log" / f"{1:020d}.json").write_text(json.dumps(protocol))
    assert file_bounds(tmp_path, 0, "n").least == {1}
    assert file_bounds(tmp_path, 1, "n") == FileBounds()


def _written(folders: pytest.TempPathFactory, rows: pa.Table) -> str:
    folder: Path = folders.mktemp("table")
    write_deltalake(str(folder), rows)
    return str(folder)

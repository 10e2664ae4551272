"""Create Delta tables from specs so that any reader can read them, and keep them as their specs say.

A table is created once, although others create it too, and after a driver died while it created it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tenacity import (
    RetryError,
    Retrying,
    retry,
    retry_if_exception,
    retry_if_exception_type,
    stop_after_attempt,
    stop_after_delay,
    wait_fixed,
)

from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.changes.table_columns import columns_of, delta_type
from millrace.control.changes.table_properties import READER_SAFE, PropertyChange, property_changes
from millrace.control.log.followed_tables import newest_table
from millrace.control.log.stored_tables import is_table
from millrace.control.storage.stored_files import names_in
from millrace.errors import BadInputError, MisfitError
from millrace_spark.delta_io.conflict_policy import Conflict, WriteKind, conflict_of
from millrace_spark.delta_io.contest import Contest, retry_until_committed
from millrace_spark.transforms.sql_texts import sql_text

OpenSession = Callable[[dict[str, str]], AbstractContextManager[SparkSession]]
"""Opens a separate session with the given settings."""


@dataclass(frozen=True)
class TableShape:
    """The data to create a table from.

    Attributes:
        columns: name -> Spark SQL type, in order.
        comments: column -> description.
        partitioned_by: partition columns.
        properties: table properties beyond the reader-safe profile.
        first_properties: further ones of a new table; an existing table keeps its own.
        comment: description of the table.
    """

    columns: Mapping[str, str]
    comments: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    first_properties: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""


def ensure_table(open_session: OpenSession, path: LakePath, shape: TableShape) -> list[str]:
    """Create the table if it does not exist, else apply the changes of its spec that touch no row.

    It adds missing columns, null in existing rows, and sets properties and comments. Each change is a separate commit,
    and Spark starts only if something differs.

    Returns:
        The changes of an existing table, one line each.

    Raises:
        MisfitError: the table on disk has other columns or partitions.
        BadInputError: it needs a newer reader.
        ConflictError: too many conflicts with other writers.
    """
    try:
        delta = newest_table(path).definition
    except TableNotFoundError:
        columns = ", ".join(_column(name, shape) for name in shape.columns)
        properties = {**READER_SAFE, **shape.properties, **shape.first_properties}
        clauses = _clauses(shape.partitioned_by, properties, shape.comment)
        statement = f"CREATE TABLE IF NOT EXISTS {sql_path(path)} ({columns}) {clauses}"
        with open_session({}) as session:
            create_table(path, lambda: session.sql(statement))
        delta = newest_table(path).definition
    _require_fit(path, delta, shape)
    changes = _changes(path, delta, shape)
    if changes:
        with open_session({}) as session:
            for change in changes.values():
                change(session)
    return list(changes)


def _changes(path: LakePath, delta: DeltaTable, shape: TableShape) -> dict[str, Callable[[SparkSession], None]]:
    """Return the changes of the table that touch no row: each in words -> what makes it."""
    changes: dict[str, Callable[[SparkSession], None]] = {}
    on_disk = columns_of(delta)
    if missing := [name for name in shape.columns if name not in on_disk]:
        what = (
            f"added the columns {', '.join(missing)}, null in the rows that are there; they stay even if the run fails"
        )
        changes[what] = lambda session: _add_columns(session, path, shape, missing)
    fields = json.loads(delta.schema().to_json())["fields"]
    stored = {field["name"]: field["metadata"].get("comment", "") for field in fields}
    comments = {name: text for name, text in shape.comments.items() if text and stored.get(name, text) != text}
    if comments:
        what = f"set the comments of {', '.join(comments)}"
        clauses = ", ".join(f"`{name}` COMMENT {sql_text(text)}" for name, text in comments.items())
        changes[what] = lambda session: _alter(session, path, f"ALTER COLUMN {clauses}")
    if properties := property_changes({**READER_SAFE, **shape.properties}, delta, shape.comment):
        what = "; ".join(change.done for change in properties)
        changes[what] = lambda session: apply_properties(session, path, properties)
    return changes


def apply_properties(session: SparkSession, path: LakePath, changes: Sequence[PropertyChange]) -> None:
    """Set the properties of the table at `path` as its spec says, and remove those that it does not name any more."""
    if properties := {change.key: change.declared for change in changes if change.declared is not None}:
        set_properties(session, path, properties)
    if gone := [change.key for change in changes if change.declared is None]:
        _alter(session, path, f"UNSET TBLPROPERTIES IF EXISTS ({', '.join(map(sql_text, gone))})")


def _alter(session: SparkSession, path: LakePath, change: str) -> None:
    statement = f"ALTER TABLE {sql_path(path)} {change}"
    retry_until_committed(Contest(str(path)), WriteKind.SCHEMA, path, lambda: session.sql(statement).collect())


def set_properties(session: SparkSession, path: LakePath, properties: Mapping[str, str]) -> None:
    """Set properties of the table at `path`."""
    _alter(session, path, f"SET TBLPROPERTIES ({_property_list(properties)})")


def committed_txn(path: LakePath, app_id: str) -> int:
    """Return the last txnVersion of `app_id` in the table; 0 if there is none, or no table."""
    try:
        return newest_table(path).transaction_version(app_id) or 0
    except TableNotFoundError:
        return 0


def sql_path(path: LakePath) -> str:
    """Return the name of the table at `path` in SQL.

    >>> sql_path(S3Path("s3://lake/silver/flights"))
    'delta.`s3a://lake/silver/flights`'
    """
    return f"delta.`{spark_path(path)}`"


def spark_path(path: LakePath) -> str:
    """Return the path for Spark, whose connector needs the scheme `s3a`.

    >>> spark_path(S3Path("s3://lake/silver/flights"))
    's3a://lake/silver/flights'
    """
    return f"s3a://{path.bucket}/{path.key}" if isinstance(path, S3Path) else str(path)


def replace_statement(
    path: LakePath, view: str, partitioned_by: Sequence[str], properties: Mapping[str, str], comment: str
) -> str:
    """Return SQL that replaces a table by a view: its rows, columns, partitions and properties."""
    clauses = _clauses(partitioned_by, properties, comment)
    return f"CREATE OR REPLACE TABLE {sql_path(path)} {clauses} AS SELECT * FROM {view}"


def _clauses(partitioned_by: Sequence[str], properties: Mapping[str, str], comment: str) -> str:
    """Return what CREATE TABLE says of a table besides its columns."""
    partitions = f" PARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
    clause = f" COMMENT {sql_text(comment)}" if comment else ""
    return f"USING delta{partitions}{clause} TBLPROPERTIES ({_property_list(properties)})"


def _column(name: str, shape: TableShape) -> str:
    comment = f" COMMENT {sql_text(shape.comments[name])}" if shape.comments.get(name) else ""
    return f"`{name}` {shape.columns[name]}{comment}"


def _property_list(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in sorted(properties.items()))


def _require_fit(path: LakePath, delta: DeltaTable, shape: TableShape) -> None:
    on_disk = columns_of(delta)
    declared = {name: delta_type(kind) for name, kind in shape.columns.items()}
    problems = [
        f"{name} is {on_disk[name]} in the table and {kind} in the spec"
        for name, kind in declared.items()
        if on_disk.get(name, kind) != kind
    ]
    problems += [
        f"the table has {name} ({on_disk[name]}), the spec does not" for name in on_disk if name not in declared
    ]
    if delta.metadata().partition_columns != list(shape.partitioned_by):
        current = ", ".join(delta.metadata().partition_columns) or "nothing"
        problems.append(
            f"the table is partitioned by {current}, the spec says {', '.join(shape.partitioned_by) or 'nothing'}"
        )
    if problems:
        raise MisfitError(
            f"The table at {path} does not fit its spec: {'; '.join(problems)}\n"
            "Nothing was written. Put the spec back, or rebuild the table: "
            f"lakehouse rebuild {path.parent.name}.{path.name}"
        )
    version = delta.protocol().min_reader_version
    if version != 1:
        raise BadInputError(
            f"The table at {path} needs Delta reader version {version}; Millrace keeps to version 1, so that every "
            "reader can read it\nRemove the feature that raised it (ALTER TABLE ... DROP FEATURE)."
        )


def _add_columns(session: SparkSession, path: LakePath, shape: TableShape, names: Sequence[str]) -> None:
    """Add the columns that the table still lacks."""
    retry_until_committed(Contest(str(path)), WriteKind.SCHEMA, path, lambda: _add_missing(session, path, shape, names))


def _was_added_meanwhile(error: BaseException) -> bool:
    """Whether Spark, or Delta a moment later, found that a column exists which was missing before."""
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    return "ALREADY_EXISTS" in condition or condition.startswith("DELTA_DUPLICATE_COLUMNS_FOUND")


# Another driver may add columns between the check and the statement: then the next check finds them.
@retry(retry=retry_if_exception(_was_added_meanwhile), stop=stop_after_attempt(8), reraise=True)
def _add_missing(session: SparkSession, path: LakePath, shape: TableShape, names: Sequence[str]) -> None:
    on_disk = columns_of(newest_table(path).definition)
    if missing := [_column(name, shape) for name in names if name not in on_disk]:
        session.sql(f"ALTER TABLE {sql_path(path)} ADD COLUMNS ({', '.join(missing)})").collect()


PATIENCE_S = 5.0
"""How long to wait for another driver that seems to create the table: from `_delta_log` to the first commit."""

_NOT_EMPTY = "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
_ANOTHER_WAS_FIRST = {Conflict.PROTOCOL_CHANGED, Conflict.METADATA_CHANGED, Conflict.CONCURRENT_WRITE}


class _InCreationError(Exception):
    """Raised when the folder is not empty and has no table yet."""


def create_table(path: LakePath, create: Callable[[], Any]) -> None:
    """Run `create`, which creates the table at `path`, unless the table exists; another driver may create it instead.

    Raises:
        BadInputError: the folder contains something that is no table.
    """
    retrying = Retrying(
        retry=retry_if_exception_type(_InCreationError), stop=stop_after_delay(PATIENCE_S), wait=wait_fixed(0.2)
    )
    try:
        retrying(_create_once, path, create)
    except RetryError:
        _remove_dead_creation(path)
        try:
            _create_once(path, create)
        except _InCreationError as error:
            content = ", ".join(sorted(names_in(path))[:5])
            raise BadInputError(
                f"The folder {path} is to become a table, but contains something else: {content}\n"
                "Move it away, then clear this task."
            ) from error


def _create_once(path: LakePath, create: Callable[[], Any]) -> None:
    if is_table(path):
        return
    try:
        create()
    except Exception as error:
        if isinstance(error, PySparkException) and (error.getCondition() or "").startswith(_NOT_EMPTY):
            raise _InCreationError from error
        if conflict_of(error) not in _ANOTHER_WAS_FIRST:
            raise
    # IF NOT EXISTS accepts a folder that merely exists.
    if not is_table(path):
        raise _InCreationError


def _remove_dead_creation(path: LakePath) -> None:
    """Remove what a driver left that died between creating `_delta_log` and the first commit; never a file of a table.

    A driver that is only slow finds its folder missing, fails, and tries again.
    """
    if not isinstance(path, Path):
        return  # a bucket has no empty folders
    log = path / "_delta_log"
    for temporary in log.glob(".*.tmp"):
        temporary.unlink(missing_ok=True)
    for folder in (log, path):
        with suppress(OSError):  # not empty, or missing: the next attempt reports it
            folder.rmdir()

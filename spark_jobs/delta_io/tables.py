"""Delta tables as Millrace makes them: created from a spec, readable by any reader, checked against the spec."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tenacity import retry, retry_if_exception, stop_after_attempt

from include.contracts.lake_path import LakePath, S3Path
from include.contracts.spec.table_spec import TableSpec
from include.control.changes.table_columns import columns_of, delta_type
from include.control.log.followed_tables import newest_table
from include.control.maintenance.retention import retention_of
from include.errors import BadInputError
from spark_jobs.delta_io.conflict_policy import WriteKind
from spark_jobs.delta_io.contest import Contest, commit_anyway
from spark_jobs.delta_io.table_creation import create_table

LOG_RETENTION = timedelta(days=30)

READER_SAFE = {
    "delta.enableDeletionVectors": "false",
    "delta.columnMapping.mode": "none",
    "delta.checkpointPolicy": "classic",
    "delta.checkpointInterval": "20",
    "delta.logRetentionDuration": f"interval {LOG_RETENTION.days} days",
    "delta.deletedFileRetentionDuration": "interval 30 days",
}
"""The profile that DuckDB, Polars, Trino and delta-rs all read: protocol reader version 1 (ADR 0004)."""

OpenSession = Callable[[dict[str, str]], AbstractContextManager[SparkSession]]
"""Opens a session of its own under the given settings."""


@dataclass(frozen=True)
class TableShape:
    """What is needed to create a table.

    Attributes:
        columns: name -> Spark SQL type, in order.
        comments: column -> description.
        partitioned_by: partition columns.
        properties: table properties beyond the reader-safe profile.
        comment: what the table is.
    """

    columns: Mapping[str, str]
    comments: Mapping[str, str] = field(default_factory=dict)
    partitioned_by: Sequence[str] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    comment: str = ""


def shape_properties(spec: TableSpec) -> dict[str, str]:
    """The table properties that a spec asks for; Delta wants the log to be kept as long as the files at least."""
    retain = f"interval {spec.maintenance.vacuum.retain}"
    feed = str(spec.maintenance.change_data_feed).lower()
    log = {"delta.logRetentionDuration": retain} if retention_of(spec) > LOG_RETENTION else {}
    return {"delta.deletedFileRetentionDuration": retain, "delta.enableChangeDataFeed": feed, **log, **spec.delta}


def ensure_table(open_session: OpenSession, path: LakePath, shape: TableShape) -> list[str]:
    """Create the table if there is none, else see to it that it is as the spec says, as far as that touches no row.

    Columns that it lacks are added, null in the rows that are there; properties and comments are set. Each is a commit
    of its own, and Spark is started only where something differs.

    Returns:
        What was changed of a table that was there, a line each.

    Raises:
        BadInputError: the table on disk has other columns or partitions, or needs a newer reader.
        ConflictError: it could not be changed, so often did others change it.
    """
    delta = _opened_or_created(open_session, path, shape)
    _check_columns(path, delta, shape)
    _check_reader_version(path, delta)
    changes = _changes(delta, shape)
    if changes:
        with open_session({}) as session:
            for change in changes:
                change.make(session, path)
    return [change.what for change in changes]


@dataclass(frozen=True)
class _Change:
    """A change of a table that touches no row.

    Attributes:
        what: the change in words.
        make: makes it.
    """

    what: str
    make: Callable[[SparkSession, LakePath], None]


def _changes(delta: DeltaTable, shape: TableShape) -> list[_Change]:
    found = []
    on_disk = columns_of(delta)
    if missing := [name for name in shape.columns if name not in on_disk]:
        what = f"added the columns {', '.join(missing)}, null in the rows that were there"
        found.append(_Change(what, lambda session, path: _add_columns(session, path, shape, missing)))
    if comments := _changed_comments(delta, shape):
        what = f"set the comments of {', '.join(comments)}"
        found.append(_Change(what, lambda session, path: _alter(session, path, _commented(comments))))
    properties = _changed_properties(delta, shape)
    if shape.comment != (delta.metadata().description or ""):
        properties = {**properties, "comment": shape.comment}
    if properties:
        what = f"set {', '.join(f'{key} = {value}' for key, value in sorted(properties.items()))}"
        statement = f"SET TBLPROPERTIES ({_listed(properties)})"
        found.append(_Change(what, lambda session, path: _alter(session, path, statement)))
    return found


def _alter(session: SparkSession, path: LakePath, change: str) -> None:
    statement = f"ALTER TABLE {sql_path(path)} {change}"
    commit_anyway(Contest(str(path)), WriteKind.SCHEMA, path, lambda: session.sql(statement).collect())


def _commented(comments: Mapping[str, str]) -> str:
    return "ALTER COLUMN " + ", ".join(f"`{name}` COMMENT {sql_text(text)}" for name, text in comments.items())


def _changed_comments(delta: DeltaTable, shape: TableShape) -> dict[str, str]:
    """The comments that the spec states and the table does not have so, of columns that it has."""
    fields = json.loads(delta.schema().to_json())["fields"]
    stated = {field["name"]: field["metadata"].get("comment", "") for field in fields}
    wanted = shape.comments.items()
    return {name: text for name, text in wanted if name in stated and text and stated[name] != text}


def committed_txn(path: LakePath, app_id: str) -> int:
    """The last txnVersion of `app_id` in the table, 0 when there is none, or no table."""
    try:
        return newest_table(path).transaction_version(app_id) or 0
    except TableNotFoundError:
        return 0


def sql_path(path: LakePath) -> str:
    """The table at `path` as SQL names it.

    >>> sql_path(S3Path("s3://lake/silver/flights"))
    'delta.`s3a://lake/silver/flights`'
    """
    return f"delta.`{spark_path(path)}`"


def spark_path(path: LakePath) -> str:
    """The path as Spark knows it: of the names of S3, only one is that of its own connector.

    >>> spark_path(S3Path("s3://lake/silver/flights"))
    's3a://lake/silver/flights'
    """
    return f"s3a://{path.bucket}/{path.key}" if isinstance(path, S3Path) else str(path)


def sql_text(value: str) -> str:
    """`value` as a SQL string literal.

    >>> sql_text("it's")
    "'it\\\\'s'"
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _opened_or_created(open_session: OpenSession, path: LakePath, shape: TableShape) -> DeltaTable:
    try:
        return newest_table(path)
    except TableNotFoundError:
        with open_session({}) as session:
            create_table(path, lambda: session.sql(_create_statement(path, shape)))
        return newest_table(path)


def _create_statement(path: LakePath, shape: TableShape) -> str:
    columns = ", ".join(_column(name, shape) for name in shape.columns)
    partitions = f" PARTITIONED BY ({', '.join(shape.partitioned_by)})" if shape.partitioned_by else ""
    comment = f" COMMENT {sql_text(shape.comment)}" if shape.comment else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {sql_path(path)} ({columns}) USING delta{partitions}{comment} "
        f"TBLPROPERTIES ({_listed({**READER_SAFE, **shape.properties})})"
    )


def replace_statement(
    path: LakePath, view: str, partitioned_by: Sequence[str], properties: Mapping[str, str], comment: str
) -> str:
    """SQL that puts the rows of a view in the place of a table: its rows, columns, partitions and properties."""
    partitions = f" PARTITIONED BY ({', '.join(partitioned_by)})" if partitioned_by else ""
    said = f" COMMENT {sql_text(comment)}" if comment else ""
    return (
        f"CREATE OR REPLACE TABLE {sql_path(path)} USING delta{partitions}{said} TBLPROPERTIES ({_listed(properties)}) "
        f"AS SELECT * FROM {view}"
    )


def _column(name: str, shape: TableShape) -> str:
    comment = f" COMMENT {sql_text(shape.comments[name])}" if shape.comments.get(name) else ""
    return f"`{name}` {shape.columns[name]}{comment}"


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in sorted(properties.items()))


def _changed_properties(delta: DeltaTable, shape: TableShape) -> dict[str, str]:
    """What the spec states and the table does not have so; what only the table states is left alone."""
    stated = delta.metadata().configuration
    return {key: value for key, value in {**READER_SAFE, **shape.properties}.items() if stated.get(key) != value}


def _check_columns(path: LakePath, delta: DeltaTable, shape: TableShape) -> None:
    on_disk = columns_of(delta)
    wanted = {name: delta_type(kind) for name, kind in shape.columns.items()}
    problems = [
        f"{name} is {on_disk[name]} in the table and {kind} in the spec"
        for name, kind in wanted.items()
        if on_disk.get(name, kind) != kind
    ]
    problems += [f"the table has {name} ({on_disk[name]}), the spec does not" for name in on_disk if name not in wanted]
    if delta.metadata().partition_columns != list(shape.partitioned_by):
        stated = ", ".join(delta.metadata().partition_columns) or "nothing"
        problems.append(
            f"the table is partitioned by {stated}, the spec says {', '.join(shape.partitioned_by) or 'nothing'}"
        )
    if problems:
        msg = (
            f"The table at {path} does not fit its spec: {'; '.join(problems)}\n"
            "Nothing was written. Put the spec back, or build the table anew: lakehouse rebuild."
        )
        raise BadInputError(msg)


def _add_columns(session: SparkSession, path: LakePath, shape: TableShape, names: Sequence[str]) -> None:
    """Add those of the columns that the table lacks."""
    commit_anyway(Contest(str(path)), WriteKind.SCHEMA, path, lambda: _add_missing(session, path, shape, names))


def _was_added_meanwhile(error: BaseException) -> bool:
    """Whether Spark, or Delta a moment later, has found a column that was not there when it was looked for."""
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    return "ALREADY_EXISTS" in condition or condition.startswith("DELTA_DUPLICATE_COLUMNS_FOUND")


# Another driver may add some of them between the look and the statement: then the next look tells.
@retry(retry=retry_if_exception(_was_added_meanwhile), stop=stop_after_attempt(8), reraise=True)
def _add_missing(session: SparkSession, path: LakePath, shape: TableShape, names: Sequence[str]) -> None:
    on_disk = columns_of(newest_table(path))
    if missing := [_column(name, shape) for name in names if name not in on_disk]:
        session.sql(f"ALTER TABLE {sql_path(path)} ADD COLUMNS ({', '.join(missing)})").collect()


def _check_reader_version(path: LakePath, delta: DeltaTable) -> None:
    version = delta.protocol().min_reader_version
    if version != 1:
        msg = (
            f"The table at {path} needs Delta reader version {version}; Millrace keeps to version 1, so that every "
            "reader can read it\nRemove the feature that raised it (ALTER TABLE ... DROP FEATURE)."
        )
        raise BadInputError(msg)

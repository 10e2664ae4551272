"""Delta tables as Millrace makes them: created from a spec, readable by any reader, checked against the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import timedelta

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tenacity import retry, retry_if_exception, stop_after_attempt

from include.contracts.lake_path import LakePath, S3Path
from include.contracts.table_spec import TableSpec
from include.control.retention import retention_of
from include.control.stored_tables import open_table
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

_DELTA_TYPES = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


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


def ensure_table(open_session: OpenSession, path: LakePath, shape: TableShape, addable: Set[str] = frozenset()) -> None:
    """Create the table if there is none, else check that it is the one the spec describes, and set its properties.

    Spark is started only where something differs. Columns that are `addable` are added to a table without them.

    Raises:
        BadInputError: the table on disk has other columns or partitions, or needs a newer reader.
        ConflictError: its properties could not be set, so often did others change it.
    """
    delta = _opened_or_created(open_session, path, shape)
    if addable - _columns_of(delta).keys():
        with open_session({}) as session:
            _add_columns(session, path, {name: kind for name, kind in shape.columns.items() if name in addable})
        delta = open_table(path, without_files=True)
    _check_columns(path, delta, shape)
    _check_reader_version(path, delta)
    if changed := _changed_properties(delta, shape):
        statement = f"ALTER TABLE {sql_path(path)} SET TBLPROPERTIES ({_listed(changed)})"
        with open_session({}) as session:
            commit_anyway(Contest(str(path)), WriteKind.SCHEMA, path, lambda: session.sql(statement).collect())


def committed_txn(path: LakePath, app_id: str) -> int:
    """The last txnVersion of `app_id` in the table, 0 when there is none, or no table."""
    try:
        return open_table(path).transaction_version(app_id) or 0
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
        return open_table(path, without_files=True)
    except TableNotFoundError:
        with open_session({}) as session:
            create_table(path, lambda: session.sql(_create_statement(path, shape)))
        return open_table(path, without_files=True)


def _create_statement(path: LakePath, shape: TableShape) -> str:
    columns = ", ".join(
        f"`{name}` {kind}" + (f" COMMENT {sql_text(shape.comments[name])}" if shape.comments.get(name) else "")
        for name, kind in shape.columns.items()
    )
    partitions = f" PARTITIONED BY ({', '.join(shape.partitioned_by)})" if shape.partitioned_by else ""
    comment = f" COMMENT {sql_text(shape.comment)}" if shape.comment else ""
    return (
        f"CREATE TABLE IF NOT EXISTS {sql_path(path)} ({columns}) USING delta{partitions}{comment} "
        f"TBLPROPERTIES ({_listed({**READER_SAFE, **shape.properties})})"
    )


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{sql_text(key)} = {sql_text(value)}" for key, value in sorted(properties.items()))


def _changed_properties(delta: DeltaTable, shape: TableShape) -> dict[str, str]:
    """What the spec states and the table does not have so; what only the table states is left alone."""
    stated = delta.metadata().configuration
    return {key: value for key, value in {**READER_SAFE, **shape.properties}.items() if stated.get(key) != value}


def _check_columns(path: LakePath, delta: DeltaTable, shape: TableShape) -> None:
    on_disk = _columns_of(delta)
    wanted = {name: _wanted_type(kind) for name, kind in shape.columns.items()}
    problems = [_column_problem(name, kind, on_disk.get(name)) for name, kind in wanted.items()]
    problems += [f"the table has {name} ({on_disk[name]}), the spec does not" for name in on_disk if name not in wanted]
    if delta.metadata().partition_columns != list(shape.partitioned_by):
        stated = ", ".join(delta.metadata().partition_columns) or "nothing"
        problems.append(
            f"the table is partitioned by {stated}, the spec says {', '.join(shape.partitioned_by) or 'nothing'}"
        )
    if found := [problem for problem in problems if problem]:
        msg = (
            f"The table at {path} does not fit its spec: {'; '.join(found)}\nNothing was written. Put the spec back, "
            "change the table with ALTER TABLE, or move the folder away to build the table anew."
        )
        raise BadInputError(msg)


def _add_columns(session: SparkSession, path: LakePath, columns: Mapping[str, str]) -> None:
    """Add those of the columns that the table lacks."""
    commit_anyway(Contest(str(path)), WriteKind.SCHEMA, path, lambda: _add_missing(session, path, columns))


def _was_added_meanwhile(error: BaseException) -> bool:
    """Whether Spark, or Delta a moment later, has found a column that was not there when it was looked for."""
    condition = (error.getCondition() or "") if isinstance(error, PySparkException) else ""
    return "ALREADY_EXISTS" in condition or condition.startswith("DELTA_DUPLICATE_COLUMNS_FOUND")


# Another driver may add some of them between the look and the statement: then the next look tells.
@retry(retry=retry_if_exception(_was_added_meanwhile), stop=stop_after_attempt(8), reraise=True)
def _add_missing(session: SparkSession, path: LakePath, columns: Mapping[str, str]) -> None:
    on_disk = _columns_on_disk(path)
    if missing := [f"`{name}` {kind}" for name, kind in columns.items() if name not in on_disk]:
        session.sql(f"ALTER TABLE {sql_path(path)} ADD COLUMNS ({', '.join(missing)})").collect()


def _columns_on_disk(path: LakePath) -> dict[str, str]:
    return _columns_of(open_table(path, without_files=True))


def _columns_of(delta: DeltaTable) -> dict[str, str]:
    """Column -> type in Delta's words."""
    fields = json.loads(delta.schema().to_json())["fields"]
    return {field["name"]: _type_name(field["type"]) for field in fields}


def _column_problem(name: str, wanted: str, on_disk: str | None) -> str:
    if on_disk is None:
        return f"the spec has {name} ({wanted}), the table does not"
    return "" if on_disk == wanted else f"{name} is {on_disk} in the table and {wanted} in the spec"


def _type_name(kind: object) -> str:
    """A Delta schema type as short text; structs by their fields.

    >>> _type_name({"type": "map", "keyType": "string", "valueType": {"type": "array", "elementType": "long"}})
    'map<string,array<long>>'
    """
    if not isinstance(kind, dict):
        return str(kind)
    if kind["type"] == "struct":
        parts = (f"{part['name']}:{_type_name(part['type'])}" for part in kind["fields"])
        return f"struct<{','.join(parts)}>"
    if kind["type"] == "map":
        return f"map<{_type_name(kind['keyType'])},{_type_name(kind['valueType'])}>"
    return f"array<{_type_name(kind['elementType'])}>"


def _wanted_type(kind: str) -> str:
    """A Spark SQL type in Delta's words, so that both sides compare; names of fields stay as they are.

    >>> _wanted_type("map<string,struct<int:bigint>>")
    'map<string,struct<int:long>>'
    """
    return re.sub(r"\b(tinyint|smallint|int|bigint)\b(?!:)", lambda word: _DELTA_TYPES[word[0]], kind)


def _check_reader_version(path: LakePath, delta: DeltaTable) -> None:
    version = delta.protocol().min_reader_version
    if version != 1:
        msg = (
            f"The table at {path} needs Delta reader version {version}; Millrace keeps to version 1, so that every "
            "reader can read it\nRemove the feature that raised it (ALTER TABLE ... DROP FEATURE)."
        )
        raise BadInputError(msg)

"""Fixes: what somebody mends in quarantined rows, worked out once and pinned as values; nothing is replayed by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from include.contracts.job.column_fix import Copy
from include.contracts.job.quarantine_request import QuarantineRequest
from include.control.quarantine.edited_rows import EditedRow, edited_rows
from include.control.quarantine.events import ReceivedRow
from include.control.quarantine.rows import QuarantinedRow
from include.errors import BadInputError, first_line
from include.specs.problem import did_you_mean
from spark_jobs.layers.received_rows import ReceivesRows, received_frame, verdicts
from spark_jobs.transforms.column_fixes import fixed_value, loses_value
from spark_jobs.transforms.received import ROW_ID, as_received, editable_columns, values_of
from spark_jobs.transforms.records import CORRUPT

_MISFITS, _EDIT, _EDITED = "_misfits", "_edit", "_edited"
_FEW = 5


@dataclass(frozen=True)
class Change:
    """What becomes of a column.

    Attributes:
        value: the new value, not yet of the column's type.
        applies: true for the rows that get it.
        is_lost: true where the new value could not be made of the old one.
    """

    value: Column
    applies: Column = field(default_factory=lambda: F.lit(True))
    is_lost: Column = field(default_factory=lambda: F.lit(False))


@dataclass(frozen=True)
class Tried:
    """What the rules say of a row.

    Attributes:
        row: the row, mended where something was to be mended.
        fate: `applied`, `quarantined` or `dropped`, as it would be if no newer event overruled it.
        reasons: the rules that it fails.
    """

    row: ReceivedRow
    fate: str
    reasons: tuple[str, ...]


def mended(
    session: SparkSession, layer: ReceivesRows, rows: Sequence[QuarantinedRow], request: QuarantineRequest
) -> list[ReceivedRow]:
    """The rows as the request mends them.

    Raises:
        BadInputError: a column does not exist, an expression is none or may not be worked out, or a value does not fit
            its column.
    """
    schema = layer.received_schema(session)
    frame = received_frame(session, [row.to_try for row in rows], schema)
    try:
        if request.edited:
            values, frame = _edited_values(session, frame, schema, edited_rows(request.edited))
        else:
            values = _assigned_values(schema, request)
        found = _changed(frame, schema, values).collect()
    except PySparkException as error:
        said = first_line(error)
        raise BadInputError(f"the fix {request.how!r} cannot be worked out: {said}\nNothing was recorded.") from error
    _require_fitting({row[ROW_ID]: row[_MISFITS] for row in found})
    return [ReceivedRow(row[ROW_ID], row["received"], request.how) for row in found]


def tried(session: SparkSession, layer: ReceivesRows, rows: Sequence[ReceivedRow]) -> list[Tried]:
    """What the rules of the table say of the rows now."""
    said = verdicts(layer.judge_received(session, rows))
    return [Tried(row, *said[row.id]) for row in rows]


def _assigned_values(schema: StructType, request: QuarantineRequest) -> dict[str, Change]:
    """Column -> its change, by expressions of the command line or operations of a form."""
    copied = [fix.value for fix in request.fixes.values() if isinstance(fix, Copy)]
    _require_columns(schema, [*request.assign, *request.fixes, *copied])
    assigned = {name: Change(_closed(name, sql)) for name, sql in request.assign.items()}
    return assigned | {
        name: Change(fixed_value(name, fix), is_lost=loses_value(name, fix)) for name, fix in request.fixes.items()
    }


def _closed(name: str, sql: str) -> Column:
    # Imported here: sqlglot takes half a second to load, and few fixes are expressions.
    from include.sql.closed_expression import require_closed

    require_closed(name, sql)
    return F.expr(sql)


def _edited_values(
    session: SparkSession, frame: DataFrame, schema: StructType, edits: Sequence[EditedRow]
) -> tuple[dict[str, Change], DataFrame]:
    """The same of edited rows, and the frame with what was stated of each: as text, and cast like an expression."""
    _require_columns(schema, {name for edit in edits for name in edit.columns})
    columns = editable_columns(schema)
    texts = StructType([StructField(name, StringType()) for name in columns])
    told = [(edit.id, edit.line, list(edit.columns)) for edit in edits]
    stated = session.createDataFrame(told, f"{ROW_ID} string, _line string, {_EDITED} array<string>")
    records = {"typed": schema, "text": texts}
    read = [values_of(F.col("_line"), _record(kind))["record"].alias(name) for name, kind in records.items()]
    joined = frame.join(stated.withColumn(_EDIT, F.struct(*read)).drop("_line"), ROW_ID)
    values = {
        name: Change(
            F.coalesce(F.col(f"{_EDIT}.typed.`{name}`").cast("string"), F.col(f"{_EDIT}.text.`{name}`")),
            F.array_contains(_EDITED, F.lit(name)),
        )
        for name in columns
    }
    if CORRUPT in columns:
        # Whoever states columns of a record that could not be parsed states the record.
        stated_record = values[CORRUPT]
        values[CORRUPT] = replace(stated_record, applies=stated_record.applies | (F.size(_EDITED) > 0))
    return values, joined


def _record(schema: StructType) -> StructType:
    return StructType([StructField("record", schema)])


def _changed(frame: DataFrame, schema: StructType, changes: Mapping[str, Change]) -> DataFrame:
    """`ROW_ID`, the rows as JSON, and the columns whose new value does not fit."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    misfits = [
        F.when(change.applies & _is_misfit(change, kinds[name]), F.lit(f"{name} is no {kinds[name]}"))
        for name, change in changes.items()
    ]
    new = {
        name: F.when(change.applies, change.value.try_cast(kinds[name])).otherwise(F.col(f"`{name}`"))
        for name, change in changes.items()
    }
    kept = [name for name in schema.names if name not in new]
    mended_frame = frame.select(
        ROW_ID,
        F.array_compact(F.array(*misfits)).alias(_MISFITS),
        *kept,
        *(value.alias(name) for name, value in new.items()),
    )
    return mended_frame.select(ROW_ID, _MISFITS, as_received(schema.names).alias("received"))


def _is_misfit(change: Change, kind: str) -> Column:
    return change.is_lost | (change.value.isNotNull() & change.value.try_cast(kind).isNull())


def _require_columns(schema: StructType, names: Iterable[str]) -> None:
    known = editable_columns(schema)
    if unknown := [name for name in names if name not in known]:
        msg = f"a row as it was received has no column {unknown[0]!r}: {did_you_mean(unknown[0], known)}"
        raise BadInputError(msg)


def _require_fitting(misfits: Mapping[str, Sequence[str]]) -> None:
    wrong = [f"  {row_id}: {', '.join(found)}" for row_id, found in misfits.items() if found]
    if wrong:
        more = [f"  and {len(wrong) - _FEW} more"] if len(wrong) > _FEW else []
        head = f"{len(wrong)} rows would get a value that does not fit its column. Nothing was recorded:"
        raise BadInputError("\n".join([head, *wrong[:_FEW], *more]))

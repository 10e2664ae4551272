"""Fixes of quarantined rows: compute the new values once; a fix does not replay the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructType

from millrace.contracts.counted import counted
from millrace.contracts.job.findings import ERASED
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.restricted import RESTRICTED, RestrictedColumns
from millrace.contracts.spec.nested_type import is_nested
from millrace.contracts.spec.value_reading import AS_WRITTEN
from millrace.control.quarantine.edited_rows import EditedRow, edited_rows
from millrace.control.quarantine.events import ReceivedRow
from millrace.control.quarantine.fixable_columns import require_fixable
from millrace.control.quarantine.stored_rows import QuarantinedRow
from millrace.errors import BadInputError, first_line
from millrace_spark.layers.bronze.bronze import BronzeIngest
from millrace_spark.layers.received_rows import received_frame
from millrace_spark.layers.silver.replays import SilverReplays
from millrace_spark.spark_errors import without_values
from millrace_spark.transforms.column_fixes import fixed_value, loses_value
from millrace_spark.transforms.received import ROW_ID, as_received, editable_columns
from millrace_spark.transforms.records import CORRUPT
from millrace_spark.transforms.refusals import is_accepted, is_quarantined, reasons
from millrace_spark.transforms.values.exact_values import can_be_stored, exact, may_not_be_stored
from millrace_spark.transforms.values.java_functions import with_java_functions
from millrace_spark.transforms.values.nested_values import MISFIT, VALUE, WHOLE, fields_in, nested_as_json, read_as

RowChecker = BronzeIngest | SilverReplays
"""What a layer knows of the received rows of its table: their columns, and the rules that they have to pass."""

_INVALID, _EDIT, _EDITED = "_invalid", "_edit", "_edited"
_MAX_SHOWN = 5
_MAX_VALUE_LENGTH = 100


@dataclass(frozen=True)
class NewValue:
    """The new value of a column.

    Attributes:
        value: the new value, not yet of the column's type.
        applies: true for the rows that get the new value.
        is_lost: true if the new value could not be computed from the old one.
    """

    value: Column
    applies: Column = field(default_factory=lambda: F.lit(True))
    is_lost: Column = field(default_factory=lambda: F.lit(False))


@dataclass(frozen=True)
class CheckedRow:
    """A quarantined row, checked by the table's rules.

    Attributes:
        row: the row, with its fix.
        outcome: `applied`, `quarantined` or `dropped`: what would happen to it if it were the newest of its key.
        reasons: the rules that it fails.
    """

    row: ReceivedRow
    outcome: str
    reasons: tuple[str, ...]

    @property
    def is_erased(self) -> bool:
        """Whether it is of an erased subject: nothing may keep or show it."""
        return any(reason.startswith(ERASED) for reason in self.reasons)


def fix_values(
    session: SparkSession,
    layer: RowChecker,
    rows: Sequence[QuarantinedRow],
    request: QuarantineRequest,
    restricted: RestrictedColumns,
) -> list[ReceivedRow]:
    """Return the rows with the fix of the request; no error shows a value of a restricted column.

    Raises:
        BadInputError: a column does not exist, an expression is invalid or not allowed, or a value does not fit its
            column.
    """
    fixed: list[Row] = []
    for schema, received in layer.by_schema(session, [row.received_row for row in rows]):
        frame, ids = received_frame(session, received, schema), {row.id for row in received}
        try:
            if request.edited:
                edits = [edit for edit in edited_rows(request.edited) if edit.id in ids]
                values, frame = _edited_values(session, frame, schema, edits)
            else:
                values = _assigned_values(schema, request)
            fixed += _with_changes(frame, schema, values, restricted).collect()
        except PySparkException as error:
            cause = without_values(first_line(error)) if restricted else first_line(error)
            msg = f"the fix {request.how!r} cannot be computed: {cause}\nNothing was recorded."
            raise BadInputError(msg) from error
    _require_valid({row[ROW_ID]: row[_INVALID] for row in fixed})
    return [ReceivedRow(row[ROW_ID], row["received"], request.how) for row in fixed]


def check_rows(session: SparkSession, layer: RowChecker, rows: Sequence[ReceivedRow]) -> list[CheckedRow]:
    """Check the rows by the table's current rules."""
    outcome = F.when(is_accepted(), "applied").when(is_quarantined(), "quarantined").otherwise("dropped")
    checked = layer.check_received(session, rows).select(ROW_ID, outcome.alias("outcome"), reasons().alias("reasons"))
    by_id = {row[ROW_ID]: row for row in checked.collect()}
    return [CheckedRow(row, by_id[row.id]["outcome"], tuple(by_id[row.id]["reasons"])) for row in rows]


def _assigned_values(schema: StructType, request: QuarantineRequest) -> dict[str, NewValue]:
    """Return column -> its change, from expressions of the command line or operations of a form."""
    require_fixable(request.columns, editable_columns(schema))
    expressions = {name: NewValue(_closed(name, sql)) for name, sql in request.assign.items()}
    return expressions | {
        name: NewValue(fixed_value(name, fix), is_lost=loses_value(name, fix)) for name, fix in request.fixes.items()
    }


def _closed(name: str, sql: str) -> Column:
    # Imported here, because sqlglot takes half a second to load, and few fixes are expressions.
    from millrace.sql.closed_expression import require_closed

    require_closed(name, sql)
    return F.expr(sql)


def _edited_values(
    session: SparkSession, frame: DataFrame, schema: StructType, edits: Sequence[EditedRow]
) -> tuple[dict[str, NewValue], DataFrame]:
    """Return column -> its change, from edited rows, and the rows joined with their edited values."""
    columns = editable_columns(schema)
    require_fixable({name for edit in edits for name in edit.columns}, columns)
    lines = [(edit.id, edit.line, list(edit.columns)) for edit in edits]
    edited = session.createDataFrame(lines, f"{ROW_ID} string, _line string, {_EDITED} array<string>")
    texts = fields_in(fields_in(F.col("_line"), ["record"])["texts"][0], columns)["texts"]
    joined = frame.join(with_java_functions(edited).withColumn(_EDIT, texts).drop("_line"), ROW_ID)
    values = dict[str, NewValue]()
    for at, name in enumerate(columns):
        text = F.col(_EDIT)[at]
        # JSON has bytes in base64, as `as_received` writes them.
        value = F.try_to_binary(text, F.lit("base64")) if schema[name].dataType == BinaryType() else text
        is_edited = F.array_contains(_EDITED, F.lit(name))
        values[name] = NewValue(value, is_edited, is_lost=text.isNotNull() & value.isNull())
    if CORRUPT in columns:
        # An edit of a column of a record that could not be parsed replaces the record.
        corrupt = values[CORRUPT]
        values[CORRUPT] = replace(corrupt, applies=corrupt.applies | (F.size(_EDITED) > 0))
    return values, joined


def _with_changes(
    frame: DataFrame, schema: StructType, changes: Mapping[str, NewValue], restricted: RestrictedColumns
) -> DataFrame:
    """Return `ROW_ID`, the changed rows as JSON in `received`, and the invalid values as texts in `_invalid`."""
    kinds = {field.name: field.dataType.simpleString() for field in schema.fields}
    values = (change.value.alias(name) for name, change in changes.items())
    given = dict(with_java_functions(frame).select(*values).dtypes)
    invalid, new = list[Column](), dict[str, Column]()
    for name, change in changes.items():
        value = _fitting(change.value, given[name], kinds[name])
        is_invalid = change.is_lost | (change.value.isNotNull() & value.isNull())
        # A change may read any column of the row.
        shown = F.lit(RESTRICTED) if restricted else F.substring(change.value.cast("string"), 1, _MAX_VALUE_LENGTH)
        text = F.concat_ws(": ", F.lit(f"{name} is no {kinds[name]}"), shown)
        invalid.append(F.when(change.applies & is_invalid, text))
        new[name] = F.when(change.applies, value).otherwise(F.col(f"`{name}`"))
    unchanged = [name for name in schema.names if name not in new]
    fixed = frame.select(
        ROW_ID,
        F.array_compact(F.array(*invalid)).alias(_INVALID),
        *unchanged,
        *(value.alias(name) for name, value in new.items()),
    )
    return fixed.select(ROW_ID, _INVALID, as_received(schema.names).alias("received"))


def _fitting(value: Column, given: str, kind: str) -> Column:
    """Return a value as a value of a type; null if the type does not hold exactly it."""
    if not is_nested(kind):
        fitting = exact(value, given, kind)
    elif given == kind:
        fitting = value
    else:
        read = read_as(nested_as_json(value, given, kind).cast("string"), kind, AS_WRITTEN)
        fitting = F.when(read[MISFIT] == WHOLE, read[VALUE])
    return F.when(can_be_stored(fitting, kind), fitting) if may_not_be_stored(kind) else fitting


def _require_valid(invalid_values: Mapping[str, Sequence[str]]) -> None:
    lines = [f"  {row_id}: {', '.join(texts)}" for row_id, texts in invalid_values.items() if texts]
    if lines:
        more = [f"  and {len(lines) - _MAX_SHOWN} more"] if len(lines) > _MAX_SHOWN else []
        head = f"{counted(len(lines), 'row')} would get a value that does not fit its column. Nothing was recorded:"
        raise BadInputError("\n".join([head, *lines[:_MAX_SHOWN], *more]))

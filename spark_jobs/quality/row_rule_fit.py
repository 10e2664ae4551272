"""Whether the row rules of a spec fit the frame they are to judge.

Under ANSI a comparison of text with numbers is a cast that fails on the first odd row and takes the whole batch with
it, so a misfit is refused before the batch starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from decimal import Decimal
from difflib import get_close_matches

from pyspark.sql.types import BooleanType, DataType, DateType, NumericType, StringType, StructType, TimestampType

from include.contracts.expectation import Expectation
from include.errors import SpecError
from spark_jobs.quality.bounds import is_time, value_bound

NUMBERS, TEXT, TIMES, BOOLEANS = "numbers", "text", "dates", "booleans"

_COMPARED = {
    "expect_column_values_to_be_between",
    "expect_column_values_to_be_in_set",
    "expect_column_values_to_not_be_in_set",
}


def require_fit(schema: StructType, rules: Sequence[Expectation]) -> None:
    """Refuse rules that the frame's columns cannot be judged by.

    Raises:
        SpecError: with one line for every misfit.
    """
    if misfits := [misfit for rule in rules for misfit in _misfits(schema, rule)]:
        raise SpecError("\n".join(misfits))


def _misfits(schema: StructType, rule: Expectation) -> Iterator[str]:
    columns = [rule.arguments[key] for key in ("column", "column_A", "column_B") if key in rule.arguments]
    if missing := [column for column in columns if column not in schema.names]:
        yield from (f"{rule.rule}: there is no column {column!r}{_likely(column, schema.names)}" for column in missing)
        return
    kinds = {column: _kind_of_type(schema[column].dataType) for column in columns}
    if len(set(kinds.values())) > 1:
        yield f"{rule.rule}: {' and '.join(f'{column} holds {kind}' for column, kind in kinds.items())}"
    if rule.name in _COMPARED:
        yield from _values_of_another_kind(rule, *kinds.items())


def _values_of_another_kind(rule: Expectation, column: tuple[str, str]) -> Iterator[str]:
    name, kind = column
    if rule.name == "expect_column_values_to_be_between":
        bounds = [rule.arguments.get(key) for key in ("min_value", "max_value")]
        wrong = [bound for bound in bounds if bound is not None and not _bounds(bound, kind)]
    else:
        wrong = [value for value in rule.arguments.get("value_set", ()) if value is not None and not _is(value, kind)]
    for value in wrong:
        yield f"{rule.rule}: {name} holds {kind}, which {value!r} cannot be compared with"


def _bounds(bound: object, kind: str) -> bool:
    value = value_bound(bound)
    return kind == NUMBERS if isinstance(value, float) else kind == TIMES


def _is(value: object, kind: str) -> bool:
    if kind == BOOLEANS:
        return isinstance(value, bool)
    if kind == NUMBERS:
        return isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if kind == TIMES:
        return isinstance(value, date) or (isinstance(value, str) and is_time(value))
    return isinstance(value, str)


def _kind_of_type(of: DataType) -> str:
    if isinstance(of, NumericType):
        return NUMBERS
    if isinstance(of, DateType | TimestampType):
        return TIMES
    if isinstance(of, BooleanType):
        return BOOLEANS
    return TEXT if isinstance(of, StringType) else of.simpleString()


def _likely(name: str, names: Sequence[str]) -> str:
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]}?" if close else f"; there are {', '.join(names)}"

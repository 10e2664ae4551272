"""Convert values to the types of columns: a value fits if its type holds exactly it, or as the spec says it is read."""

from __future__ import annotations

from functools import reduce
from operator import and_

from pyspark.sql import Column
from pyspark.sql import functions as F

from millrace.contracts.spec.column_types import (
    FLOATING,
    NUMBERS,
    TEXT,
    TIME,
    TIMES_READ,
    TYPES,
    WHOLE_NUMBERS,
    base_of,
    types_of,
)
from millrace.contracts.spec.nested_type import is_nested, nested_type
from millrace.contracts.spec.value_reading import AS_WRITTEN, EPOCHS, ValueReading
from millrace_spark.transforms.values.java_functions import java_function

_FLOATING = types_of(FLOATING)
_USUAL_LENGTH = 60
"""Spark's cast to a decimal takes a minute for a million digits."""

_DAY = r"^\s*\d{4}-\d{1,2}-\d{1,2}"
_MIDNIGHT = _DAY + r"(?:[ T]0?0(?::0?0(?::0?0(?:\.0*)?)?)?\s*(?:Z|UTC|[+-]00:?00)?)?\s*$"
# Without names of zones: Java takes BST for the time of Dhaka; Europe/Berlin has an hour a year twice or not at all.
_ZONE = r"(?:Z|UTC|GMT|UT)?(?:[+-][\d:]+)?"
_INSTANT = _DAY + rf"(?:[ T]\d{{1,2}}(?::\d{{1,2}}(?::\d{{1,2}}(?:\.\d{{0,6}}0*)?)?)?\s*{_ZONE})?\s*$"
_LONGER_INSTANT = _INSTANT.replace("{0,6}0*", "*")
_MINUTES_AND_ZONE = r"([ T]\d{1,2}:\d{1,2})\s*(Z|UTC|[+-]\d\d:?\d\d)(?=\s*$)"
_WITH_COMMA = r"^\s*(?:[+-]?(?:\d+|\d{1,3}(?:\.\d{3})+)(?:,\d+)?|(?i:nan|[+-]?inf(?:inity)?))\s*$"
_MARK = "\uffff"
"""What a number begins with, if its column has `decimal_comma`; another text that begins with it has one more."""

_FIRST_YEAR, _AFTER_LAST_YEAR = "0001-01-01", "10000-01-01"
_FIRST_DAY_NUMBER, _LAST_DAY_NUMBER = -719_162, 2_932_896
"""The first day of the year 1 and the last of the year 9999, in days since 1970."""


def exact(value: Column, received: str, kind: str, reading: ValueReading = AS_WRITTEN) -> Column:
    """Return a value as a value of a type; null if the type does not hold exactly it, as `reading` reads it.

    Args:
        value: the value, without the texts that `with_null_values` replaces.
        received: its Spark type.
        kind: the type to convert to, without parts.
        reading: how the spec says that values are read.
    """
    read = exact_but_for_year(value, received, kind, reading)
    return in_range(read, kind) if kind in TIMES_READ else read


def exact_but_for_year(value: Column, received: str, kind: str, reading: ValueReading = AS_WRITTEN) -> Column:
    """Return what `exact` returns, but also dates and times of years that not every reader can show."""
    base, base_received = base_of(kind), base_of(received)
    sent = as_sent(value, reading) if received == "string" else value
    if base in TIMES_READ:
        return _time(sent, base_received, kind, reading)
    if kind in ("string", received):
        return sent.cast(kind)
    if {base, base_received} <= {*NUMBERS} and not reading.round:
        return _number(value, received, kind)
    text = sent.cast("string")
    if reading.decimal_comma and received == "string" and base in NUMBERS:
        text = F.when(value.startswith(_MARK), sent).when(text.rlike(_WITH_COMMA), F.translate(text, ",.", "."))
    return _of_text(text, kind, reading.round or "unnecessary")


def with_null_values(value: Column, reading: ValueReading) -> Column:
    """Return a value; null if it is one of the texts that the spec says mean that there is none."""
    text = as_sent(value.cast("string"), reading)
    return F.when(~text.isin(*reading.null_values), value) if reading.null_values else value


def with_mark(text: Column, is_number: bool) -> Column:
    """Return a text for a column whose numbers have commas, like `marked` of `JsonTexts.java`: a number has a mark."""
    return F.concat(F.when(F.lit(is_number) | text.startswith(_MARK), _MARK).otherwise(""), text)


def as_sent(text: Column, reading: ValueReading) -> Column:
    """Return a text without the mark that it has where numbers in texts have commas."""
    return without_mark(text) if reading.decimal_comma else text


def without_mark(text: Column) -> Column:
    """Return a text without its mark."""
    return F.when(text.startswith(_MARK), F.substring(text, 2, 2**31 - 1)).otherwise(text)


def in_range(value: Column, kind: str) -> Column:
    """Return a date or time; null if it is not in the years 1 to 9999."""
    return F.when(_is_in_range(value, kind), value)


def can_be_stored(value: Column, kind: str) -> Column:
    """Return whether each text in a value of a type is UTF-8, and each date and time in the years 1 to 9999.

    A null value can be stored.
    """
    if kind == "string":
        return F.coalesce(F.is_valid_utf8(value), F.lit(True))
    if kind in TIMES_READ:
        return F.coalesce(_is_in_range(value, kind), F.lit(True))
    if not is_nested(kind):
        return F.lit(True)
    nested = nested_type(kind)
    if nested.kind == "struct":
        return reduce(and_, (can_be_stored(value[name], part) for name, part in nested.parts.items()))
    (part,) = nested.parts.values()
    if nested.kind == "array":
        return F.coalesce(F.forall(value, lambda element: can_be_stored(element, part)), F.lit(True))
    keys = F.forall(F.map_keys(value), lambda key: F.is_valid_utf8(key))
    values = F.forall(F.map_values(value), lambda element: can_be_stored(element, part))
    return F.coalesce(keys & values, F.lit(True))


def may_not_be_stored(kind: str) -> bool:
    """Whether a type has values that `can_be_stored` refuses."""
    return any(name in kind for name in types_of(TEXT, TIME))


def _is_in_range(value: Column, kind: str) -> Column:
    return (value >= F.lit(_FIRST_YEAR).cast(kind)) & (value < F.lit(_AFTER_LAST_YEAR).cast(kind))


def _time(value: Column, received: str, kind: str, reading: ValueReading) -> Column:
    if received in TIMES_READ:
        read = value.cast(kind)
        return read if kind != "date" or received == "date" else F.when(read.cast(received) == value, read)
    text = value.cast("string")
    if reading.epoch:
        return _since_1970(text, kind, reading)
    if reading.format:
        return _of_instant(F.coalesce(*(_of_pattern(text, each) for each in reading.format)), kind)
    if kind == "date":
        read = text.try_cast(kind)
        return F.when((read.cast("string") == text) | text.rlike(_MIDNIGHT), read)
    # Spark takes no zone directly after the minutes.
    full = F.when(text.rlike(_MINUTES_AND_ZONE), F.regexp_replace(text, _MINUTES_AND_ZONE, "$1:00$2")).otherwise(text)
    full = F.when(text.rlike(_LONGER_INSTANT if reading.round == "down" else _INSTANT), full)
    return F.when(_is_usual_instant(text), text).otherwise(full).try_cast(kind)


def _of_pattern(text: Column, pattern: str) -> Column:
    instant = F.try_to_timestamp(text, F.lit(pattern))
    if "VV" not in pattern:
        return instant
    return F.when(instant.isNotNull() & ~java_function("SkippedTime", text, F.lit(pattern)), instant)


def _is_usual_instant(text: Column) -> Column:
    """Return whether a text has a day, hours, minutes, seconds and at most six digits more, if Spark can cast it.

    Most timestamps are written like this, and need no regular expression.
    """
    marks = (F.substring(text, 5, 1) == "-") & (F.substring(text, 8, 1) == "-") & (F.substring(text, 17, 1) == ":")
    point = F.instr(text, ".")
    is_no_name = _is_digit(text, -1) | text.endswith("Z")
    return marks & is_no_name & ((point == 0) | ((point == 20) & ~_is_digit(text, 27)))


def _is_digit(text: Column, at: int) -> Column:
    return F.substring(text, at, 1).between("0", "9")


def _since_1970(text: Column, kind: str, reading: ValueReading) -> Column:
    rounding = reading.round or "unnecessary"
    if reading.epoch in (None, "days"):
        days = _rounded(text, 0, rounding).try_cast("int")
        return F.date_from_unix_date(F.when(days.between(_FIRST_DAY_NUMBER, _LAST_DAY_NUMBER), days)).cast(kind)
    micros = _rounded(text, 0, rounding, EPOCHS[reading.epoch]).try_cast("bigint")
    return _of_instant(in_range(F.timestamp_micros(micros), "timestamp"), kind)


def _of_instant(instant: Column, kind: str) -> Column:
    day = instant.cast("date")
    return instant if kind == "timestamp" else F.when(day.cast("timestamp") == instant, day)


def _number(value: Column, received: str, kind: str) -> Column:
    read = value.try_cast(kind)
    fits = read.try_cast(received) == value
    if {kind, received} & {*_FLOATING} and "bigint" in (kind, received):
        fits &= read.cast("double") < F.lit(2.0**63)  # which Spark casts to 2^63 - 1, and that to 2^63 again
    fitting = F.when(fits, read)
    if kind == "float":  # also 0.1, of which a double has more digits
        fitting = fitting.otherwise(java_function("ExactDouble", value.cast("string"), F.lit(True)).cast(kind))
    return fitting


def _of_text(text: Column, kind: str, rounding: str) -> Column:
    """Return a number or another value that is no date or time, of its text.

    The usual spellings need only what Spark compiles. Others are read by Java, which knows all their digits.
    """
    read, is_scientific = text.try_cast(kind), text.contains("e") | text.contains("E")
    if kind in WHOLE_NUMBERS:
        return F.coalesce(read, F.when(text.isNotNull(), _rounded(text, 0, rounding).try_cast(kind)))
    if kind.startswith("decimal"):
        scale = int(kind.rstrip(")").partition(",")[2])
        length, point = F.length(text), F.instr(text, ".")
        is_ascii = F.octet_length(text) == length  # Java takes the digits of any script
        is_usual = (length <= _USUAL_LENGTH) & ((point == 0) | (length - point <= scale)) & ~is_scientific & is_ascii
        return F.when(is_usual, read).otherwise(_rounded(text, scale, rounding).try_cast(kind))
    if kind in _FLOATING:
        is_short = (F.length(text) <= TYPES[kind].digits) & _is_digit(text, -1) & ~text.contains("x")
        is_usual = is_short & ~is_scientific & ~text.contains("X")
        return F.when(is_usual, read).otherwise(java_function("ExactDouble", text, F.lit(kind == "float")).cast(kind))
    return read


def _rounded(text: Column, scale: int, rounding: str, power: int = 0) -> Column:
    return java_function("ExactDecimal", text, F.lit(power), F.lit(scale), F.lit(rounding))

"""The values that specs are made of: names, column types, retentions, table properties."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ByteSize, Field, PlainSerializer, WithJsonSchema
from pydantic_core import PydanticCustomError

NAME = r"[a-z][a-z0-9_]*"
SIMPLE_TYPES = frozenset(
    {"string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date", "timestamp", "binary"}
)
_LONGEST = timedelta(days=100 * 365)
DECIMAL = r"decimal\(\d{1,2},\d{1,2}\)"
_OTHER_NAMES_OF_TYPES = {
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    "real": "float",
    "text": "string",
    "varchar": "string",
    "bool": "boolean",
    "datetime": "timestamp",
    "numeric": "decimal(p,s)",
    "number": "decimal(p,s)",
}


def _is_a_column_type(name: str) -> str:
    if name in SIMPLE_TYPES:
        return name
    if re.fullmatch(DECIMAL, name):
        digits, after_point = map(int, re.findall(r"\d+", name))
        if not after_point <= digits <= 38 or not digits:
            msg = "a decimal has 1 to 38 digits, and no more after the point than in all: decimal(18,2)"
            raise ValueError(msg)
        return name
    known = [*sorted(SIMPLE_TYPES), "decimal(p,s)"]
    given = _OTHER_NAMES_OF_TYPES.get(name.lower(), name.lower())
    raise PydanticCustomError("unknown_word", "unknown column type", {"given": given, "known": known})


def _is_a_retention(text: str) -> str:
    if re.fullmatch(r"\d+ (hours|days)", text):
        if not _span(text):
            msg = "a retention of nothing would remove what readers and running jobs still use; write '7 days'"
            raise ValueError(msg)
        return text
    msg = f"{text!r} is not a retention; write it as '168 hours' or '7 days'"
    raise ValueError(msg)


def _span(text: str) -> timedelta:
    """What `<n> <unit>` says.

    Raises:
        ValueError: it is longer than anything that a spec can mean.
    """
    number, unit = text.split()
    if len(number) < 10 and (span := timedelta(**{unit: int(number)})) <= _LONGEST:
        return span
    msg = f"{text!r} is longer than {_LONGEST.days // 365} years"
    raise ValueError(msg)


def duration(text: str) -> timedelta:
    """What a retention says.

    >>> duration("7 days")
    datetime.timedelta(days=7)
    """
    return _span(text)


def age(text: object) -> timedelta:
    """What an age says.

    >>> age("36 hours")
    datetime.timedelta(days=1, seconds=43200)

    Raises:
        ValueError: it is none.
    """
    if isinstance(text, str) and re.fullmatch(r"\d+ (minutes|hours|days)", text):
        return _span(text)
    msg = f"{text!r} is no age; write it as '90 minutes', '36 hours' or '2 days'"
    raise ValueError(msg)


def _as_a_wait(value: object) -> object:
    if isinstance(value, str) and re.fullmatch(r"\d+ (seconds|minutes|hours)", value):
        return _span(value)
    if isinstance(value, timedelta):
        return value
    msg = f"{value!r} is not a wait; write it as '30 seconds' or '5 minutes'"
    raise ValueError(msg)


def _as_starting_offsets(value: object) -> object:
    if value in ("earliest", "latest") or isinstance(value, datetime):
        return value
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        msg = f"{value!r} is no start; write earliest, latest, or an instant with its zone: '2013-01-01T00:00:00Z'"
        raise ValueError(msg)
    return instant


def _is_a_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        msg = f"not a regular expression: {error}"
        raise ValueError(msg) from error
    return text


def _as_property_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Character = Annotated[str, Field(min_length=1, max_length=1)]
ColumnName = Annotated[str, Field(pattern=rf"^{NAME}$")]
ColumnType = Annotated[str, AfterValidator(_is_a_column_type)]
Retention = Annotated[str, AfterValidator(_is_a_retention)]
Pattern = Annotated[str, AfterValidator(_is_a_pattern)]
Wait = Annotated[
    timedelta,
    BeforeValidator(_as_a_wait),
    PlainSerializer(lambda wait: f"{wait.total_seconds():.0f} seconds", return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^[0-9]+ (seconds|minutes|hours)$"}),
]
Bytes = Annotated[
    ByteSize,
    Field(gt=0),
    WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9.]+ ?[A-Za-z]*$"}]}
    ),
]
StartingOffsets = Annotated[
    str | datetime,
    BeforeValidator(_as_starting_offsets),
    WithJsonSchema({"anyOf": [{"enum": ["earliest", "latest"]}, {"type": "string", "format": "date-time"}]}),
]
PropertyText = Annotated[
    str, BeforeValidator(_as_property_text), WithJsonSchema({"type": ["string", "boolean", "integer"]})
]

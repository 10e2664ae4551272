"""The types of single values in specs: names, column types, durations, table properties."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ByteSize,
    Field,
    PlainSerializer,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from millrace.contracts.spec.column_types import DECIMAL_PATTERN, SIMPLE_TYPES, TYPES
from millrace.contracts.spec.duration import LOOKBACK, RETENTION, WAIT
from millrace.contracts.spec.nested_type import is_nested, nested_type

NAME = r"[a-z][a-z0-9_]*"
LAYERS = ("bronze", "silver", "gold")
"""The layers, upstream first."""

TABLE = re.compile(rf"(?:{'|'.join(LAYERS)})\.{NAME}")
"""The name of a table."""


def layer_order(layer: str) -> int:
    """Return the place of a layer, upstream first; another word than a layer, as in a wrong spec, comes last.

    >>> sorted(["gold", "bronce", "bronze"], key=layer_order)
    ['bronze', 'gold', 'bronce']
    """
    return LAYERS.index(layer) if layer in LAYERS else len(LAYERS)


_MISNOMERS = {
    misnomer: name if name in SIMPLE_TYPES else f"{name}(p,s)"
    for name, kind in TYPES.items()
    for misnomer in kind.misnomers
}


def _check_column_type(name: str) -> str:
    if is_nested(name):
        nested = nested_type(name)
        for part in nested.parts.values():
            if _check_column_type(part) == "binary":
                raise ValueError(f"there are no bytes within a nested type, as in {name!r}: write string")
        return str(nested)
    if name in SIMPLE_TYPES:
        return name
    if re.fullmatch(DECIMAL_PATTERN, name):
        digits, after_point = map(int, re.findall(r"\d+", name))
        if not after_point <= digits <= 38 or not digits:
            raise ValueError("a decimal has 1 to 38 digits, and no more after the point than in all: decimal(18,2)")
        return name
    vocabulary = [*sorted(SIMPLE_TYPES), "decimal(p,s)", "struct<name: type>", "array<type>", "map<string, type>"]
    word = _MISNOMERS.get(name.lower(), name.lower())
    raise PydanticCustomError("unknown_word", "unknown column type", {"word": word, "vocabulary": vocabulary})


def _check_is_text_or_number(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a text or a whole number is needed here")
    return value


def _check_retention(text: str) -> str:
    if not RETENTION.parse(text):
        raise ValueError("a retention of nothing would remove what readers and running jobs still use; write '7 days'")
    return text


def _check_is_plain(text: str) -> str:
    if any(unicodedata.category(each) == "Cc" and each not in "\n\r\t" for each in text):
        raise ValueError("a control character, which Airflow's database does not store; leave it out")
    return text


def _check_is_not_empty(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("at least one name is needed")
    return names


def _check_lookback(text: str) -> str:
    if text != "unbounded" and not LOOKBACK.parse(text):
        raise ValueError("a lookback of nothing is the default: leave it out")
    return text


def _parse_starting_offsets(value: object) -> object:
    if value in ("earliest", "latest") or isinstance(value, datetime):
        return value
    try:
        instant = datetime.fromisoformat(str(value))
    except ValueError:
        instant = None
    if instant is None or instant.tzinfo is None:
        msg = f"{value!r} is not a start; write earliest, latest, or an instant with its zone: '2013-01-01T00:00:00Z'"
        raise ValueError(msg)
    return instant


def _check_pattern(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"not a regular expression: {error}") from error
    return text


def _convert_to_property_text(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else value


Character = Annotated[str, Field(min_length=1, max_length=1)]
ColumnName = Annotated[str, Field(pattern=rf"^{NAME}$")]
ColumnNames = Annotated[
    tuple[ColumnName, ...],
    AfterValidator(_check_is_not_empty),
    BeforeValidator(lambda value: value if isinstance(value, list | tuple) else (value,)),
    PlainSerializer(lambda names: names[0] if len(names) == 1 else list(names), return_type=str | list[str]),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^{NAME}$"},
                {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": f"^{NAME}$"}},
            ]
        }
    ),
]
"""The name of a column, or a list of names."""
ColumnType = Annotated[str, AfterValidator(_check_column_type)]
Retention = Annotated[
    str, AfterValidator(_check_retention), WithJsonSchema({"type": "string", "pattern": RETENTION.pattern})
]
Lookback = Annotated[
    str,
    AfterValidator(_check_lookback),
    WithJsonSchema({"anyOf": [{"const": "unbounded"}, {"type": "string", "pattern": LOOKBACK.pattern}]}),
]
PartitionValue = Annotated[StrictInt | StrictStr, BeforeValidator(_check_is_text_or_number)]
Pattern = Annotated[str, AfterValidator(_check_pattern)]
Wait = Annotated[
    timedelta,
    BeforeValidator(lambda value: value if isinstance(value, timedelta) else WAIT.parse(value)),
    PlainSerializer(lambda wait: f"{wait.total_seconds():.0f} seconds", return_type=str),
    WithJsonSchema({"type": "string", "pattern": WAIT.pattern}),
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
    BeforeValidator(_parse_starting_offsets),
    WithJsonSchema({"anyOf": [{"enum": ["earliest", "latest"]}, {"type": "string", "format": "date-time"}]}),
]
PlainText = Annotated[str, AfterValidator(_check_is_plain)]
PropertyText = Annotated[
    str, BeforeValidator(_convert_to_property_text), WithJsonSchema({"type": ["string", "boolean", "integer"]})
]

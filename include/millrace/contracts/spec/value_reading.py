"""How the values of a column are read, where that is not as ISO 8601 and SQL spell them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema

from millrace.contracts.spec.column_types import (
    BYTES,
    DECIMAL,
    NUMBERS,
    TEXT,
    TIMES,
    TRUTH,
    WHOLE_NUMBER,
    base_of,
    types_of,
)
from millrace.contracts.spec.nested_type import scalar_types
from millrace.contracts.strict_model import StrictModel

EPOCHS = {"s": 6, "ms": 3, "us": 0, "ns": -3}
"""Unit of a number since 1970 -> the power of ten that makes microseconds of it; days have none."""

_EXACT_NUMBERS = frozenset(types_of(WHOLE_NUMBER, DECIMAL))
_FITTING = {
    "format": frozenset(TIMES),
    "epoch": frozenset(TIMES),
    "round": _EXACT_NUMBERS | {"timestamp"},
    "decimal_comma": frozenset(NUMBERS),
}
"""Setting -> the types whose values it reads."""

VALUE_RULE = "exact"
"""The rule by which values are read, as specs are recorded with it; those of an earlier Millrace have none."""

_NEVER_CONVERTED = {
    "csv": frozenset(types_of(TEXT, TRUTH, BYTES, WHOLE_NUMBER)),
    "json": frozenset(types_of(TRUTH, BYTES, WHOLE_NUMBER)),
    "avro": frozenset(types_of(BYTES)),
}
"""Format -> the types of which Millrace has always stored exactly what was sent, or nothing."""

_LETTERS: dict[str, Sequence[int]] = {
    **dict.fromkeys("y", range(1, 7)),
    **dict.fromkeys("MLG", range(1, 5)),
    **dict.fromkeys("dHhKkms", (1, 2)),
    **dict.fromkeys("XxZ", range(1, 6)),
    **{"D": (1, 2, 3), "a": (1,), "S": range(1, 7), "V": (2,), "O": (1, 4)},
}
"""Letter of a pattern -> how often it may follow itself, where Spark 4.1 reads with it, and what it means is sure.

Spark refuses further ones of https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html when it reads. The
names of zones (`z`) have several meanings: Java takes BST for the time of Bougainville.
"""
_NEEDED = {"ML": "y", "d": "ML", "HkhK": "dD", "hK": "a", "a": "HkhK", "m": "HkhK", "s": "m", "S": "s"}
"""Letters -> those of which a pattern with one of them must have one: Spark takes the first month, day or hour."""

_MICROSECONDS = 6


def _check_time_pattern(pattern: str) -> str:
    unquoted = re.sub(r"'[^']*'", " ", pattern)
    if "'" in unquoted:
        raise ValueError(f"{pattern!r} has a quote that does not end")
    if "S" * (_MICROSECONDS + 1) in unquoted:
        raise ValueError(f"{pattern!r} has more digits of a second than a timestamp, which has {_MICROSECONDS}")
    groups = [group[0] for group in re.finditer(r"([A-Za-z])\1*", unquoted)]
    if odd := [group for group in groups if len(group) not in _LETTERS.get(group[0], ())]:
        raise ValueError(
            f"Spark reads nothing by {', '.join(dict.fromkeys(odd))} in {pattern!r}, or several things: write text "
            f"between quotes, or read it as string; letters are {', '.join(_LETTERS)}, zones X, Z or VV"
        )
    if re.search(r"[{}#]|^[^\[]*\]", unquoted):
        raise ValueError(f"{pattern!r} has a bracket or mark with a meaning of its own: write it between quotes")
    letters = {group[0] for group in groups}
    if "D" in letters and letters & {*"MLd"}:
        raise ValueError(f"{pattern!r} has D, the day of the year, beside a month: d is the day of the month")
    if "y" not in letters:
        raise ValueError(f"{pattern!r} has no year, so that a value would be no date: read it as string")
    for some, needed in _NEEDED.items():
        if letters & {*some} and not letters & {*needed}:
            has = ", ".join(sorted(letters & {*some}))
            raise ValueError(
                f"{pattern!r} has {has} and nothing of {', '.join(needed)}, so that another time would be read: "
                "M is a month, d a day, H an hour, h one with a for AM and PM, m a minute, s a second, S its digits"
            )
    return pattern


def _texts(value: object) -> object:
    if value in ("", [], ()):
        raise ValueError("it is empty, and says nothing: leave it out; for empty texts as null write null_values: ['']")
    return (value,) if isinstance(value, str) else value


_Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(_texts),
    PlainSerializer(
        lambda texts: texts[0] if len(texts) == 1 and texts[0] else list(texts), return_type=str | list[str]
    ),
    WithJsonSchema(
        {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]}
    ),
]


def may_be_converted(kind: str, source_format: str = "") -> bool:
    """Return whether a type has values that an earlier Millrace may have rounded, cut off or guessed.

    Args:
        kind: the type.
        source_format: the format of the source of a bronze table; empty for values of a table.
    """
    return not scalar_types(kind) <= _NEVER_CONVERTED.get(source_format, frozenset(types_of(TEXT, BYTES)))


def _unset(value: object) -> bool:
    """Return whether a setting is not stated: then it is in no digest of the spec, and older tables keep theirs."""
    return not value


class ValueReading(StrictModel):
    """How the values of a column are read. A value that the column's type does not hold exactly does not fit.

    Attributes:
        format: a pattern of dates and times in Spark's letters, or a list of them; then a value must be written like
            that. ISO 8601 and SQL spellings need none.
        epoch: a number is a date or time, counted from 1970-01-01 in UTC: `s`, `ms`, `us`, `ns` or `days`.
        round: how digits that the type does not have are rounded: `half_up`, `half_even`, `down` (cut off), `up`,
            `floor` or `ceiling`. Without it a number with such digits does not fit. Of a time as text only `down`.
        null_values: texts that mean that there is no value, such as `\\N`.
        decimal_comma: whether numbers are written like `1.234,56`.
    """

    format: Annotated[_Texts, AfterValidator(lambda patterns: tuple(map(_check_time_pattern, patterns)))] = Field(
        default=(), exclude_if=_unset
    )
    epoch: Literal["s", "ms", "us", "ns", "days"] | None = Field(default=None, exclude_if=_unset)
    round: Literal["half_up", "half_even", "down", "up", "floor", "ceiling"] | None = Field(
        default=None, exclude_if=_unset
    )
    null_values: _Texts = Field(default=(), exclude_if=_unset)
    decimal_comma: bool = Field(default=False, exclude_if=_unset)

    @property
    def reading(self) -> str:
        """The stated settings, as a spec has them; empty if values are read as they are written.

        >>> ValueReading(decimal_comma=True, null_values="-").reading
        'null_values: "-", decimal_comma: true'
        """
        stated = self.model_dump(mode="json", include=set(ValueReading.model_fields))
        return ", ".join(f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in stated.items())

    def check_type(self, kind: str) -> None:
        """Check that the settings mean something for values of a type.

        Raises:
            ValueError: no part of the type is of the kind that a setting is for.
        """
        kinds = set(map(base_of, scalar_types(kind)))
        for name, fitting in _FITTING.items():
            if getattr(self, name) and not kinds & fitting:
                raise ValueError(f"{name} is for {', '.join(sorted(fitting))}, and this is {kind}")
        if self.round not in (None, "down") and not self.epoch and not kinds & _EXACT_NUMBERS:
            raise ValueError(
                f"round: {self.round} is for numbers; the further digits of a time as text can be cut: down"
            )
        if self.format and self.epoch:
            raise ValueError("format reads texts and epoch reads numbers: state one of them")


AS_WRITTEN = ValueReading()
"""The reading of a column whose spec says nothing of it."""

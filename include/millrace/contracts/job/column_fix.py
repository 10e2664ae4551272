"""The operations by which a form can fix a column of quarantined rows. None of them takes SQL."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from millrace.contracts.strict_model import StrictModel


class SetValue(StrictModel):
    """Set the column to `value`, a text that the column's type holds exactly."""

    how: Literal["set"] = "set"
    value: str

    def __str__(self) -> str:
        return f"set to {self.value!r}"


class SetNull(StrictModel):
    """Set the column to null."""

    how: Literal["set to null"] = "set to null"

    def __str__(self) -> str:
        return self.how


class Copy(StrictModel):
    """Copy the value of another column of the row, which `value` names."""

    how: Literal["copy"] = "copy"
    value: str = Field(min_length=1)

    def __str__(self) -> str:
        return f"copied from {self.value}"


class ChangeText(StrictModel):
    """Trim the value, or write it in capital or small letters."""

    how: Literal["trim", "upper", "lower"]

    def __str__(self) -> str:
        return self.how


class Replace(StrictModel):
    """Replace the text `value`, which is not a pattern, within the value by the text `by`."""

    how: Literal["replace"] = "replace"
    value: str = Field(min_length=1)
    by: str = ""

    def __str__(self) -> str:
        return f"{self.value!r} replaced by {self.by!r}"


class ParseDate(StrictModel):
    """Read the value as a date or an instant, by the pattern `value` in Spark's letters: `dd.MM.yyyy`."""

    how: Literal["parse date"] = "parse date"
    value: str = Field(min_length=1)

    def __str__(self) -> str:
        return f"parsed as {self.value!r}"


class MapValues(StrictModel):
    """Replace whole values, as text, by others or by null; a value that is not in the map stays unchanged."""

    how: Literal["map"] = "map"
    values: dict[str, str | None] = Field(min_length=1)

    def __str__(self) -> str:
        return "mapped: " + ", ".join(f"{old!r} to {new!r}" for old, new in self.values.items())


ColumnFix = Annotated[
    SetValue | SetNull | Copy | ChangeText | Replace | ParseDate | MapValues, Field(discriminator="how")
]
"""One operation on one column."""

FIX_KINDS = ("set", "set to null", "copy", "trim", "upper", "lower", "replace", "parse date", "map")
"""Every `how`, in the order of the form."""

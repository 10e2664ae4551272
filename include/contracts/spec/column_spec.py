"""One column of a table."""

from __future__ import annotations

from pydantic import Field

from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import ColumnType


class ColumnSpec(SpecPart):
    """One column.

    Attributes:
        type: the Spark SQL type that the column is stored with.
        nullable: false makes a row without a value a refused row (reason `<column> is null`).
        required: bronze: a file without the column is broken; it may else be missing, and is null then.
        description: what it means, with its unit.
        expression: Spark SQL over the source's columns (`from` in YAML); the column of the same name when left out.
    """

    type: ColumnType = "string"
    nullable: bool = True
    required: bool = False
    description: str = ""
    expression: str | None = Field(default=None, alias="from")

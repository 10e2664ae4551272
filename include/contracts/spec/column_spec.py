"""One column of a table."""

from __future__ import annotations

from pydantic import ConfigDict, Field

from include.contracts.spec.values import ColumnType
from include.contracts.strict_model import StrictModel


class ColumnSpec(StrictModel):
    """One column.

    Attributes:
        type: the Spark SQL type of the stored column.
        nullable: false refuses a row without a value (reason `<column> is null`).
        required: bronze: whether a file without the column is broken; if not, the column is null in the file's rows.
        description: the meaning of the values, with their unit.
        expression: Spark SQL over the source's columns (`from` in YAML); by default the column of the same name.
    """

    model_config = ConfigDict(populate_by_name=True)

    type: ColumnType = "string"
    nullable: bool = True
    required: bool = False
    description: str = ""
    expression: str | None = Field(default=None, alias="from")

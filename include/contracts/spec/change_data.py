"""The settings that turn events into rows of a silver table; their names and meanings are those of Spark's AutoCDC."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from include.contracts.spec.values import ColumnName
from include.contracts.strict_model import StrictModel


class ChangeData(StrictModel):
    """The settings of change data.

    Attributes:
        keys: the columns that identify a row.
        sequence_by: the columns of the spec that order the events of one key; without them their intervals order them.
        stored_as_scd_type: 1 keeps the last state of a key, 2 every state, each from `__START_AT` to `__END_AT`.
        apply_as_deletes: Spark SQL over the source's columns; a row for which it is true deletes its key.
        apply_as_truncates: Spark SQL over the source's columns; a row for which it is true deletes every key.
        ignore_null_updates: whether a null in an event leaves the column unchanged.
        except_column_list: columns that expressions, rules and the sequence can use, but that the table does not store.
        track_history_column_list: type 2: only a change of these columns begins a new period; the others are updated.
        track_history_except_column_list: type 2: a change of only these columns begins no new period.
    """

    keys: tuple[ColumnName, ...] = Field(min_length=1)
    sequence_by: tuple[ColumnName, ...] = ()
    stored_as_scd_type: Literal[1, 2] = 1
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    ignore_null_updates: bool = False
    except_column_list: tuple[ColumnName, ...] = ()
    track_history_column_list: tuple[ColumnName, ...] = ()
    track_history_except_column_list: tuple[ColumnName, ...] = ()

    @property
    def keeps_history(self) -> bool:
        """Whether the table keeps every state of a key."""
        return self.stored_as_scd_type == 2

    @property
    def period_columns(self) -> tuple[str, ...]:
        """The columns that a table with history has for the start and the end of a period."""
        return ("__START_AT", "__END_AT") if self.keeps_history else ()

    @property
    def builds_on_earlier(self) -> bool:
        """Whether the effect of an event depends on all earlier events of its key, not only on the last event."""
        return self.keeps_history or self.ignore_null_updates

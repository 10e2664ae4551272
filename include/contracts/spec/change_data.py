"""How events become the rows of a silver table, in the names and with the meaning of Spark's AutoCDC."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from include.contracts.spec.part import SpecPart
from include.contracts.spec.values import ColumnName


class ChangeData(SpecPart):
    """The settings of change data.

    Attributes:
        keys: the columns that identify a row.
        sequence_by: the columns of the spec that order the events of one key; without them the order is the interval's.
        stored_as_scd_type: 1 keeps the last state of a key, 2 every state, each from `__START_AT` to `__END_AT`.
        apply_as_deletes: Spark SQL over the source's columns; a row for which it is true deletes its key.
        apply_as_truncates: Spark SQL over the source's columns; a row for which it is true deletes every key.
        ignore_null_updates: whether a null in an event leaves the column as it was.
        except_column_list: columns of the spec that expressions, rules and the sequence can use, and the table lacks.
        track_history_column_list: type 2: only a change of these columns begins a new period; the others are updated.
        track_history_except_column_list: type 2: a change of these columns alone begins none.
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
        """Whether every state of a key is kept."""
        return self.stored_as_scd_type == 2

    @property
    def builds_on_earlier(self) -> bool:
        """Whether what an event does depends on the events before it, and not only on the last one."""
        return self.keeps_history or self.ignore_null_updates

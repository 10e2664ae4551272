"""The settings that turn events into rows of a silver table; their names and meanings are those of Spark's AutoCDC."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from millrace.contracts.spec.common_settings import ColumnSpec
from millrace.contracts.spec.nested_type import is_nested
from millrace.contracts.spec.values import NAME, ColumnName, PartitionValue
from millrace.contracts.strict_model import StrictModel

SOURCE_TABLE = "_source_table"
"""The source that a row came from, of a table with a list of sources. Expressions of its spec can name it."""


SOURCE_PRIORITY = "_source_priority"
"""The field of `_sequence` for the place of a source in the list: -1 for the first one, which is the greatest."""


class MergeSource(StrictModel):
    """One of the tables that a silver table is merged from.

    Attributes:
        table: the bronze table.
        columns: column of the silver table -> Spark SQL over this source's columns, in place of the column's `from`;
            such as another name, or a constant.
        apply_as_deletes: the condition of this source, in place of the table's; a delete from one source deletes the
            key, also if its row came from another.
        partitions: the values of the column `concurrent_by` that this source may deliver, and no other source.
    """

    table: str = Field(pattern=rf"^bronze\.{NAME}$")
    columns: dict[ColumnName, str] = Field(default_factory=dict)
    apply_as_deletes: str | None = None
    partitions: tuple[PartitionValue, ...] = ()


class ChangeData(StrictModel):
    """The settings of change data.

    Attributes:
        source: the bronze table that it is merged from.
        sources: several bronze tables that it is merged from, in place of `source`. An expression can name the table
            that a row came from: `_source_table`.
        source_priority: which source wins where several have a key, by their order in `sources`, the first before all
            others: `before_sequence` whatever the sequence of the events, `after_sequence` only of events with the same
            sequence. Without it the sequence alone decides.
        columns: the table's columns, with their types.
        keys: the columns that identify a row; a row without one of them is quarantined.
        sequence_by: the columns of the spec that order the events of one key; without them their intervals order them.
            A row without one of them is quarantined. Of two events with the same sequence, the one with the greater
            hash counts, every time.
        stored_as_scd_type: 1 keeps the last state of a key, 2 every state, each from `__START_AT` to `__END_AT`.
        apply_as_deletes: Spark SQL over the source's columns; a row for which it is true deletes its key. Rules check
            only its key and sequence. The delete is remembered: an older event cannot insert the key again.
        apply_as_truncates: Spark SQL over the source's columns; a row for which it is true deletes every key whose last
            event is not later; it needs a sequence but no key, and is remembered like a delete. Not with history or
            `ignore_null_updates`.
        ignore_null_updates: whether a null in an event keeps the column's earlier value, back to the last delete.
        except_column_list: columns that expressions, rules and the sequence can use, but that the table does not store.
        track_history_column_list: type 2: only a change of these columns begins a new period; the others are updated.
        track_history_except_column_list: type 2: a change of only these columns begins no new period. By default every
            stored column but the keys is tracked.
    """

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["source"]}, {"required": ["sources"]}]})

    source: str | None = Field(default=None, pattern=rf"^bronze\.{NAME}$")
    sources: tuple[MergeSource, ...] = ()
    source_priority: Literal["before_sequence", "after_sequence"] | None = None
    columns: dict[ColumnName, ColumnSpec] = Field(min_length=1)
    keys: tuple[ColumnName, ...] = Field(min_length=1)
    sequence_by: tuple[ColumnName, ...] = ()
    stored_as_scd_type: Literal[1, 2] = 1
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    ignore_null_updates: bool = False
    except_column_list: tuple[ColumnName, ...] = ()
    track_history_column_list: tuple[ColumnName, ...] = ()
    track_history_except_column_list: tuple[ColumnName, ...] = ()

    @model_validator(mode="after")
    def _has_its_sources(self) -> Self:
        if self.source is None and not self.sources:
            message = "the key is missing; or write sources, a list, for several tables"
            raise PydanticCustomError("settings_clash", message, {"key": "source"})
        if self.source is not None and self.sources:
            message = "the sources are stated twice: leave out source, and add it to the list"
            raise PydanticCustomError("settings_clash", message, {"key": "sources"})
        return self

    @property
    def only_source(self) -> str:
        """The bronze table of a table with one source.

        Raises:
            TypeError: the table has several sources.
        """
        if self.source is None:
            raise TypeError(f"the table has a list of sources: {', '.join(source.table for source in self.sources)}")
        return self.source

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

    def of_source(self, table: str) -> Self:
        """Return the spec as if this table were the only source: with the columns and the deletes of that source."""
        if self.source is not None:
            return self
        source = next(source for source in self.sources if source.table == table)
        columns = {
            name: column.model_copy(update={"expression": source.columns.get(name, column.expression)})
            for name, column in self.columns.items()
        }
        deletes = self.apply_as_deletes if source.apply_as_deletes is None else source.apply_as_deletes
        update: dict[str, Any] = {"source": table, "sources": (), "columns": columns, "apply_as_deletes": deletes}
        if self.source_priority:
            place = self.sources.index(source) + 1
            columns[SOURCE_PRIORITY] = ColumnSpec.model_validate({"type": "int", "from": f"-{place}"})
            update["except_column_list"] = (*self.except_column_list, SOURCE_PRIORITY)
        return self.model_copy(update=update)

    def of_stream(self, table: str) -> Self:
        """Return the spec of the stream that merges this source alone; rows name their source as before."""
        return self.model_copy(update={"sources": tuple(source for source in self.sources if source.table == table)})

    @property
    def partitions(self) -> tuple[PartitionValue, ...]:
        """The values of `concurrent_by` that its sources may deliver."""
        return tuple(value for source in self.sources for value in source.partitions)

    @property
    def sequence_fields(self) -> dict[str, str]:
        """The fields of `_sequence` with their types: `sequence_by`, or else the interval; and the priority."""
        fields = {name: self.columns[name].type for name in self.sequence_by} or {"_interval_start": "timestamp"}
        priority = {SOURCE_PRIORITY: "int"} if self.source_priority else {}
        return {**priority, **fields} if self.source_priority == "before_sequence" else {**fields, **priority}

    @property
    def sequence_type(self) -> str:
        """The Spark type of `_sequence`."""
        return f"struct<{','.join(f'{name}:{kind}' for name, kind in self.sequence_fields.items())}>"

    @property
    def start_type(self) -> str:
        """The Spark type of `__START_AT` and `__END_AT`: that of the sequence, or of its only column."""
        if len(self.sequence_by) > 1:
            return self.sequence_type
        return self.columns[self.sequence_by[0]].type if self.sequence_by else "timestamp"

    @property
    def stored_columns(self) -> tuple[str, ...]:
        """The columns that the table stores, in their order."""
        return tuple(name for name in self.columns if name not in self.except_column_list)

    @property
    def nested_columns(self) -> tuple[str, ...]:
        """The stored columns that are structs, arrays or maps."""
        return tuple(name for name in self.stored_columns if is_nested(self.columns[name].type))

    @property
    def tracked_columns(self) -> tuple[str, ...]:
        """The columns whose changes begin a new period, in a table with history."""
        if self.track_history_column_list:
            return self.track_history_column_list
        untracked = {*self.keys, *self.track_history_except_column_list}
        return tuple(name for name in self.stored_columns if name not in untracked)

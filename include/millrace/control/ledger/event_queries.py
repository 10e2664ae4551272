"""Queries of the events of an `ops` table; each reads a data file only once, since data files never change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from millrace.control.events.conditions import Condition


@dataclass(frozen=True)
class EventQuery:
    """The query for the events that meet conditions, each a column with its condition; the result has `schema`."""

    schema: pa.Schema
    conditions: tuple[tuple[str, Condition], ...] = ()

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        """Return the events of one data file that meet the conditions."""
        rows = []
        for batch in events:
            for column, condition in self.conditions:
                batch = batch.filter(condition.matches(batch[column]))
            rows.append(batch.select(self.schema.names))
        return pa.Table.from_batches(rows).cast(self.schema).combine_chunks() if rows else self.schema.empty_table()

"""Queries of the events of an `ops` table; each reads a data file only once, since data files never change."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from include.control.events.conditions import Condition

Result = TypeVar("Result", covariant=True)


class EventQuery(Protocol[Result]):
    """A query of events; equal queries have equal results."""

    @property
    def columns(self) -> Collection[str]:
        """The columns that the query reads."""

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> Result:
        """Return the result for the events of one data file."""


@dataclass(frozen=True)
class RowsQuery:
    """The query for the events that meet conditions, each a column with its condition; the result has `schema`."""

    schema: pa.Schema
    conditions: tuple[tuple[str, Condition], ...] = ()

    @property
    def columns(self) -> Collection[str]:
        """The columns that the query reads."""
        return {*self.schema.names, *(column for column, _ in self.conditions)}

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        """Return the events of one data file that meet the conditions."""
        rows = []
        for batch in events:
            for column, condition in self.conditions:
                batch = batch.filter(condition.matches(batch[column]))
            rows.append(batch.select(self.schema.names))
        return pa.Table.from_batches(rows, schema=self.schema).combine_chunks()

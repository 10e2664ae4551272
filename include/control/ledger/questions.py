"""What is asked of the events of an `ops` table: of each data file once, since data files never change."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

Answer = TypeVar("Answer", covariant=True)


class Question(Protocol[Answer]):
    """Something to be known of events; equal questions have equal answers.

    Attributes:
        columns: the columns that must be read for it.
    """

    @property
    def columns(self) -> Collection[str]:
        """The columns that must be read for it."""

    def answer(self, events: Iterator[pa.RecordBatch]) -> Answer:
        """What the events of one data file say."""


@dataclass(frozen=True)
class Rows:
    """Which events hold given values? Answered by the events.

    Attributes:
        wanted: the columns of the answer.
        among: (column, the values of which it must hold one), for each that is asked about.
    """

    wanted: pa.Schema
    among: tuple[tuple[str, frozenset[str]], ...] = ()

    @property
    def columns(self) -> Collection[str]:
        """The columns that must be read for it."""
        return {*self.wanted.names, *(column for column, _ in self.among)}

    def answer(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        """The events of one data file that hold the values."""
        found = [self._held(piece).select(self.wanted.names) for piece in events]
        return pa.Table.from_batches(found, schema=self.wanted).combine_chunks()

    def _held(self, piece: pa.RecordBatch) -> pa.RecordBatch:
        for column, values in self.among:
            piece = piece.filter(pc.is_in(piece[column], pa.array(values, pa.string())))
        return piece


@dataclass(frozen=True)
class Values:
    """Which values does a column hold? Meant for one that holds few."""

    column: str

    @property
    def columns(self) -> Collection[str]:
        """The columns that must be read for it."""
        return {self.column}

    def answer(self, events: Iterator[pa.RecordBatch]) -> frozenset[str]:
        """The values in one data file."""
        return frozenset(value for piece in events for value in piece[self.column].unique().to_pylist())

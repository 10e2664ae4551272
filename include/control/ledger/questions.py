"""What is asked of the events of an `ops` table: of each data file once, since data files never change."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from include.control.events.conditions import Condition

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
    """Which events meet conditions? Answered by the events.

    Attributes:
        wanted: the columns of the answer.
        conditions: (column, what it must hold).
    """

    wanted: pa.Schema
    conditions: tuple[tuple[str, Condition], ...] = ()

    @property
    def columns(self) -> Collection[str]:
        """The columns that must be read for it."""
        return {*self.wanted.names, *(column for column, _ in self.conditions)}

    def answer(self, events: Iterator[pa.RecordBatch]) -> pa.Table:
        """The events of one data file that meet the conditions."""
        found = [self._meeting(piece).select(self.wanted.names) for piece in events]
        return pa.Table.from_batches(found, schema=self.wanted).combine_chunks()

    def _meeting(self, piece: pa.RecordBatch) -> pa.RecordBatch:
        for column, condition in self.conditions:
            piece = piece.filter(condition.met_by(piece[column]))
        return piece

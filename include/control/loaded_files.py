"""The contents that a table has loaded, kept so that hundreds of thousands of them need little memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from include.control.batch import FileFact
from include.control.ledger_events import file_fact

_AT_A_TIME = 5_000


class LoadedFiles:
    """Files as the ledger has them, oldest first; a path once for each content.

    They stay columns: as Python objects they would take ten times the memory.
    """

    def __init__(self, events: pa.Table) -> None:
        self._events = events

    def __iter__(self) -> Iterator[FileFact]:
        """Every file, few of them at a time."""
        return _facts(self._events)

    def of(self, paths: Sequence[str]) -> list[FileFact]:
        """The files of these paths."""
        asked = pa.array(paths, pa.string())
        return list(_facts(self._events.filter(pc.is_in(self._events["path"], asked))))


def _facts(events: pa.Table) -> Iterator[FileFact]:
    for batch in events.to_batches(max_chunksize=_AT_A_TIME):
        yield from map(file_fact, batch.to_pylist())

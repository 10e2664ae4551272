"""The file contents that a table has loaded, as digests of 60 bytes for each file.

The digests stay in memory between plans; the next plan reads only the events that were appended in the meantime. For a
table with a long history, only those data files of the ledger are read that can contain the requested paths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.control.ledger.events import NO_TOKEN, BatchEvent, FileEvent
from include.control.log.batch import FileFact

_PLANNED = np.dtype(
    [("recorded_at", "i8"), ("token", "i4"), ("path", "S16"), ("size", "i8"), ("mtime_ns", "i8"), ("checksum", "S16")]
)
"""The record of a planned file. A digest is BLAKE2 of 128 bits: among a trillion paths, two have the same digest with a
probability of 10^-14."""

_Files = npt.NDArray[np.void]
_Digests = npt.NDArray[np.bytes_]


@dataclass(frozen=True)
class PlannedFiles:
    """The planned and seen files in one data file of `ops.files`.

    Attributes:
        attempts: (token, number of the batch) of each attempt; the token of seen files is `NO_TOKEN`.
        files: one `_PLANNED` record for each file, sorted by path; `token` is the index in `attempts`.
    """

    attempts: tuple[tuple[str, int | None], ...]
    files: _Files

    def of(self, paths: _Digests) -> _Files:
        """Return the files with these paths; no path may occur twice."""
        first, end = (np.searchsorted(self.files["path"], paths, side=side) for side in ("left", "right"))
        counts = end - first
        offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        files: _Files = self.files[np.repeat(first, counts) + offsets]
        return files


@dataclass(frozen=True)
class PlannedFilesQuery:
    """The query for the planned and seen files of a table with this id, in `ops.files`."""

    table_id: str
    columns: Collection[str] = (
        *("recorded_at", "event", "table_id", "batch_seq", "token", "path", "size", "mtime_ns", "checksum"),
    )

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> PlannedFiles:
        """Return the planned files of one data file."""
        index: dict[tuple[str, int | None], int] = {}
        content = bytearray()
        for batch in events:
            content += self._files(batch, index).tobytes()
        files = np.frombuffer(content, _PLANNED)
        return PlannedFiles(tuple(index), files[np.argsort(files["path"], kind="stable")])

    def _files(self, events: pa.RecordBatch, index: dict[tuple[str, int | None], int]) -> _Files:
        """Return the planned files among the events; `index` gets the index of each new attempt."""
        is_planned = pc.is_in(events["event"], pa.array([FileEvent.PLANNED.value, FileEvent.SEEN.value]))
        planned = events.filter(pc.and_(is_planned, pc.equal(events["table_id"], self.table_id)))
        attempts = zip(planned["token"].to_pylist(), planned["batch_seq"].to_pylist(), strict=True)
        files = np.empty(len(planned), _PLANNED)
        files["recorded_at"] = planned["recorded_at"].cast(pa.int64())
        files["token"] = [index.setdefault(attempt, len(index)) for attempt in attempts]
        for column in ("size", "mtime_ns"):
            files[column] = planned[column]
        for column in ("path", "checksum"):
            files[column] = _digests(planned[column].to_pylist())
        return files


@dataclass(frozen=True)
class WinnersQuery:
    """The query for the attempts that became batches of a table with this id, in `ops.batches`."""

    table_id: str
    columns: Collection[str] = ("event", "table_id", "token")

    def evaluate(self, events: Iterator[pa.RecordBatch]) -> frozenset[str]:
        """Return the tokens in one data file."""
        tokens: set[str] = set()
        for batch in events:
            is_committed = pc.equal(batch["event"], BatchEvent.COMMITTED.value)
            is_wanted = pc.and_(is_committed, pc.equal(batch["table_id"], self.table_id))
            tokens.update(batch["token"].filter(is_wanted).to_pylist())
        return frozenset(tokens)


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """The file contents that winning attempts loaded into a table, read from the ledger for the requested paths.

    Attributes:
        read_planned: returns, for some paths, the planned files of the data files that can contain them.
        read_winners: returns, for some attempts (token -> number of the batch), the tokens that became batches.
        facts: returns, for some paths, every content that was loaded under them, oldest first.
    """

    read_planned: Callable[[Collection[str]], Iterable[PlannedFiles]] = field(repr=False)
    read_winners: Callable[[Mapping[str, int | None]], Collection[str]] = field(repr=False)
    facts: Callable[[Collection[str]], list[FileFact]] = field(repr=False)

    def compare(self, listed: Sequence[FileFact]) -> tuple[list[bool], list[bool]]:
        """Return two flags for each listed file: its path was loaded before; its last loaded content is listed.

        The content is the same if the size and the entity tag are the same; without a tag, if size and time are the
        same, as in `is_unchanged`.
        """
        loaded = self._of({file.path for file in listed})
        if not len(loaded):
            return [False] * len(listed), [False] * len(listed)
        paths, tags = (_digests([getattr(file, name) for file in listed]) for name in ("path", "checksum"))
        last = loaded[np.searchsorted(loaded["path"], paths, side="right") - 1]
        is_known = last["path"] == paths
        same_size = last["size"] == np.array([file.size for file in listed], np.int64)
        same_time = last["mtime_ns"] == np.array([file.mtime_ns for file in listed], np.int64)
        has_tag = np.array([bool(file.checksum) for file in listed])
        is_same = is_known & same_size & np.where(has_tag, last["checksum"] == tags, same_time)
        return is_known.tolist(), is_same.tolist()

    def holds(self, file: FileFact, *, only_last: bool) -> bool:
        """Whether the content of a file was loaded under its path.

        Args:
            file: the file, with its checksum.
            only_last: whether the table keeps only the last loaded content of a path.
        """
        loaded = self._of([file.path])
        checksums = (loaded[-1:] if only_last else loaded)["checksum"]
        return bool((checksums == _digests([file.checksum])).any())

    def _of(self, paths: Collection[str]) -> _Files:
        """Return the loaded files with these paths, sorted by path, and by time for each path."""
        digests = np.unique(_digests(paths))
        planned = [(each.attempts, each.of(digests)) for each in self.read_planned(paths)]
        attempted = (attempts[at] for attempts, files in planned for at in np.unique(files["token"]))
        winners, loaded = {NO_TOKEN, *self.read_winners(dict(attempted))}, [np.empty(0, _PLANNED)]
        for attempts, files in planned:
            won = [at for at in np.unique(files["token"]) if attempts[at][0] in winners]
            loaded.append(files[np.isin(files["token"], won)])
        every = np.concatenate(loaded)
        return every[np.lexsort((every["recorded_at"], every["path"]))]


def _digests(texts: Iterable[str]) -> _Digests:
    return np.frombuffer(b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts), "S16")

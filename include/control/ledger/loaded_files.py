"""The contents that a table has loaded, as digests: 60 bytes a file, whatever its path.

They are kept from one plan to the next, which reads what was appended since. Of an old table only those data files of
the ledger are read that may speak of the files that are asked about.
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
"""What is kept of a planned file. A digest is BLAKE2 of 128 bits: two of a trillion paths share theirs with a
probability of 10^-14."""

_Files = npt.NDArray[np.void]
_Digests = npt.NDArray[np.bytes_]


@dataclass(frozen=True)
class PlannedFiles:
    """The files that the attempts of one data file were planned to load, and those that were seen with another time.

    Attributes:
        attempts: (token, number of the batch) of each attempt; `NO_TOKEN` of files that were seen.
        files: a record a file by path, as `_PLANNED` says; `token` is the place in `attempts`.
    """

    attempts: tuple[tuple[str, int | None], ...]
    files: _Files

    def of(self, paths: _Digests) -> _Files:
        """The files with these paths, of which none comes twice."""
        first, end = (np.searchsorted(self.files["path"], paths, side=side) for side in ("left", "right"))
        many = end - first
        within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        found: _Files = self.files[np.repeat(first, many) + within]
        return found


@dataclass(frozen=True)
class Planned:
    """Which files were planned to be loaded into a table of this id, or seen to be? A question to `ops.files`."""

    table_id: str
    columns: Collection[str] = (
        *("recorded_at", "event", "table_id", "batch_seq", "token", "path", "size", "mtime_ns", "checksum"),
    )

    def answer(self, events: Iterator[pa.RecordBatch]) -> PlannedFiles:
        """The planned files of one data file."""
        places: dict[tuple[str, int | None], int] = {}
        files = bytearray()
        for piece in events:
            files += self._files(piece, places).tobytes()
        found = np.frombuffer(files, _PLANNED)
        return PlannedFiles(tuple(places), found[np.argsort(found["path"], kind="stable")])

    def _files(self, piece: pa.RecordBatch, places: dict[tuple[str, int | None], int]) -> _Files:
        is_planned = pc.is_in(piece["event"], pa.array([FileEvent.PLANNED.value, FileEvent.SEEN.value]))
        planned = piece.filter(pc.and_(is_planned, pc.equal(piece["table_id"], self.table_id)))
        attempts = zip(planned["token"].to_pylist(), planned["batch_seq"].to_pylist(), strict=True)
        files = np.empty(len(planned), _PLANNED)
        files["recorded_at"] = planned["recorded_at"].cast(pa.int64())
        files["token"] = [places.setdefault(attempt, len(places)) for attempt in attempts]
        for column in ("size", "mtime_ns"):
            files[column] = planned[column]
        for column in ("path", "checksum"):
            files[column] = _digests(planned[column].to_pylist())
        return files


@dataclass(frozen=True)
class Winners:
    """Which attempts became batches of a table of this id? A question to `ops.batches`."""

    table_id: str
    columns: Collection[str] = ("event", "table_id", "token")

    def answer(self, events: Iterator[pa.RecordBatch]) -> frozenset[str]:
        """The tokens in one data file."""
        found = (piece["token"].filter(self._is_meant(piece)).to_pylist() for piece in events)
        return frozenset(token for tokens in found for token in tokens)

    def _is_meant(self, piece: pa.RecordBatch) -> pa.Array:
        is_committed = pc.equal(piece["event"], BatchEvent.COMMITTED.value)
        return pc.and_(is_committed, pc.equal(piece["table_id"], self.table_id))


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """Every content that a winning attempt loaded into a table; the ledger is read for the paths that are asked about.

    Attributes:
        planned: paths -> what the data files of `ops.files` say that may speak of them.
        won: attempts (token -> number of the batch) -> the tokens of those that became batches.
        facts: paths -> every content that was loaded under them, oldest first.
    """

    planned: Callable[[Collection[str]], Iterable[PlannedFiles]] = field(repr=False)
    won: Callable[[Mapping[str, int | None]], Collection[str]] = field(repr=False)
    facts: Callable[[Collection[str]], list[FileFact]] = field(repr=False)

    def compare(self, listed: Sequence[FileFact]) -> tuple[list[bool], list[bool]]:
        """Of each listed file: (whether its path was loaded before, whether it is listed as it was loaded last).

        It is, with the same size and entity tag, or the same time where its listing has no tag: `same_listing`.
        """
        loaded = self._of({file.path for file in listed})
        if not len(loaded):
            return [False] * len(listed), [False] * len(listed)
        paths, tags = (_digests([getattr(file, name) for file in listed]) for name in ("path", "checksum"))
        known = loaded[np.searchsorted(loaded["path"], paths, side="right") - 1]
        is_known = known["path"] == paths
        same_size = known["size"] == _numbers(file.size for file in listed)
        same_time = known["mtime_ns"] == _numbers(file.mtime_ns for file in listed)
        has_tag = np.array([bool(file.checksum) for file in listed])
        is_same = is_known & same_size & np.where(has_tag, known["checksum"] == tags, same_time)
        return is_known.tolist(), is_same.tolist()

    def holds(self, file: FileFact, *, only_last: bool) -> bool:
        """Whether the content of a file was loaded under its path.

        Args:
            file: the file, with its checksum.
            only_last: whether what was loaded last is all that the table still holds of a path.
        """
        loaded = self._of([file.path])
        held = (loaded[-1:] if only_last else loaded)["checksum"]
        return bool((held == _digests([file.checksum])).any())

    def _of(self, paths: Collection[str]) -> _Files:
        """What was loaded under these paths, by path, the oldest first of each."""
        wanted = np.unique(_digests(paths))
        found = [(one.attempts, one.of(wanted)) for one in self.planned(paths)]
        asked: dict[str, int | None] = dict(
            attempts[at] for attempts, files in found for at in np.unique(files["token"])
        )
        winners, loaded = {NO_TOKEN, *self.won(asked)}, [np.empty(0, _PLANNED)]
        for attempts, files in found:
            won = [at for at in np.unique(files["token"]) if attempts[at][0] in winners]
            loaded.append(files[np.isin(files["token"], won)])
        every = np.concatenate(loaded)
        return every[np.lexsort((every["recorded_at"], every["path"]))]


def _numbers(of: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(of, np.int64)


def _digests(texts: Iterable[str]) -> _Digests:
    return np.frombuffer(b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts), "S16")

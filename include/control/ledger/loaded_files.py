"""The contents that a table has loaded, as digests: 108 bytes a file while they are looked up, whatever its path.

60 of them are kept from one plan to the next, which reads what was appended since.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from include.control.ledger.events import FileEvent
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
        tokens: the attempts; `NO_TOKEN` of those that were seen.
        files: a record a file, as `_PLANNED` says; `token` is the place in `tokens`.
    """

    tokens: tuple[str, ...]
    files: _Files

    def of(self, tokens: Collection[str]) -> _Files:
        """The files of these attempts."""
        wanted = np.array([token in tokens for token in self.tokens], bool)
        return self.files if wanted.all() else self.files[wanted[self.files["token"]]]


@dataclass(frozen=True)
class Planned:
    """Which files were planned to be loaded into a table of this id, or seen to be? A question to `ops.files`."""

    table_id: str
    columns: Collection[str] = ("recorded_at", "event", "table_id", "token", "path", "size", "mtime_ns", "checksum")

    def answer(self, events: Iterator[pa.RecordBatch]) -> PlannedFiles:
        """The planned files of one data file."""
        tokens: dict[str, int] = {}
        files = bytearray()
        for piece in events:
            files += self._files(piece, tokens).tobytes()
        return PlannedFiles(tuple(tokens), np.frombuffer(files, _PLANNED))

    def _files(self, piece: pa.RecordBatch, tokens: dict[str, int]) -> _Files:
        is_planned = pc.is_in(piece["event"], pa.array([FileEvent.PLANNED.value, FileEvent.SEEN.value]))
        planned = piece.filter(pc.and_(is_planned, pc.equal(piece["table_id"], self.table_id)))
        files = np.empty(len(planned), _PLANNED)
        files["recorded_at"] = planned["recorded_at"].cast(pa.int64())
        files["token"] = [tokens.setdefault(token, len(tokens)) for token in planned["token"].to_pylist()]
        for column in ("size", "mtime_ns"):
            files[column] = planned[column]
        for column in ("path", "checksum"):
            files[column] = _digests(planned[column].to_pylist())
        return files


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """Every content that a winning attempt loaded into a table, by path, the oldest first of each.

    Attributes:
        facts: reads the ledger: every content that was loaded under these paths, oldest first.
    """

    _paths: _Digests
    _sizes: npt.NDArray[np.int64]
    _times: npt.NDArray[np.int64]
    _checksums: _Digests
    facts: Callable[[Collection[str]], list[FileFact]] = field(repr=False)

    def compare(self, listed: Sequence[FileFact]) -> tuple[list[bool], list[bool]]:
        """Of each listed file: (whether its path was loaded before, whether it is listed as it was loaded last).

        It is, with the same size and entity tag, or the same time where its listing has no tag: `same_listing`.
        """
        if not len(self._paths):
            return [False] * len(listed), [False] * len(listed)
        paths, tags = (_digests([getattr(file, name) for file in listed]) for name in ("path", "checksum"))
        last = np.searchsorted(self._paths, paths, side="right") - 1
        is_known = self._paths[last] == paths
        same_size = self._sizes[last] == _numbers(file.size for file in listed)
        same_time = self._times[last] == _numbers(file.mtime_ns for file in listed)
        has_tag = np.array([bool(file.checksum) for file in listed])
        is_same = is_known & same_size & np.where(has_tag, self._checksums[last] == tags, same_time)
        return is_known.tolist(), is_same.tolist()

    def holds(self, file: FileFact, *, only_last: bool) -> bool:
        """Whether the content of a file was loaded under its path.

        Args:
            file: the file, with its checksum.
            only_last: whether what was loaded last is all that the table still holds of a path.
        """
        path, checksum = _digests([file.path]), _digests([file.checksum])
        first, end = (int(np.searchsorted(self._paths, path, side=side)[0]) for side in ("left", "right"))
        held = self._checksums[max(first, end - 1) if only_last else first : end]
        return bool((held == checksum).any())


def loaded_files(planned: Iterable[_Files], facts: Callable[[Collection[str]], list[FileFact]]) -> LoadedFiles:
    """Put together what the data files of `ops.files` say.

    Args:
        planned: the files of winning attempts and those that were seen, and no others.
        facts: reads the ledger: every content that was loaded under these paths, oldest first.
    """
    pieces = [np.empty(0, _PLANNED), *planned]
    # Column by column, so that little is held twice.
    paths = _column(pieces, "path")
    order = np.lexsort((_column(pieces, "recorded_at"), paths))
    sizes, times, checksums = (_column(pieces, name)[order] for name in ("size", "mtime_ns", "checksum"))
    return LoadedFiles(paths[order], sizes, times, checksums, facts)


def _column(pieces: Sequence[_Files], name: str) -> npt.NDArray[Any]:
    return np.concatenate([piece[name] for piece in pieces])


def _numbers(of: Iterable[int]) -> npt.NDArray[np.int64]:
    return np.fromiter(of, np.int64)


def _digests(texts: Iterable[str]) -> _Digests:
    return np.frombuffer(b"".join(blake2b(text.encode(), digest_size=16).digest() for text in texts), "S16")

"""The landing files compared with the ledger: which files must be read, and which need not."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.landing import Landing, is_unchanged
from millrace.control.ledger.events import Failure
from millrace.control.ledger.loaded_files import LoadedFiles
from millrace.control.log.batch import FileFact
from millrace.errors import NotReadyError, StorageError

ReadFile = Callable[[FileFact], FileFact]
"""Reads a listed file, and returns it with its checksum, its columns and its defect. It raises `NotReadyError` or
`StorageError` if the storage does not deliver the file."""

IsEnough = Callable[[int], bool]
"""Whether to stop after this number of files has been compared."""

_CHUNK = 5_000
"""The number of files that are looked up at once: quick, and with little memory."""

_MAX_NAMES = 3

CHANGED_WAY_OUT = (
    "Have the source deliver corrections under a new name, put the old content back, or set source.on_changed_file to "
    "append_new_version (the old rows stay) or replace (they go)."
)
"""What helps if a file was loaded before with other content, and the spec rejects that."""


@dataclass(frozen=True)
class MatchedFiles:
    """The landing files compared with the ledger.

    Attributes:
        unread: files whose listing the ledger does not have, by path.
        renewed: the paths of unread files that were loaded before, with another content or time.
        changed: the paths of renewed files that were read, and have another content.
        given_up: files that have failed too often, by path.
        loaded: the number of files whose listing is the same as when they were loaded.
        seen: loaded files with a new time and the same content; they were read.
        touched: given-up files with a new time and the same content; they were read.
        failures: path -> the earlier failure of an unread or given-up file.
        is_partial: whether the comparison was stopped early: there are more files.
    """

    unread: tuple[FileFact, ...]
    renewed: frozenset[str]
    changed: frozenset[str]
    given_up: tuple[FileFact, ...]
    loaded: int
    seen: tuple[FileFact, ...]
    touched: tuple[FileFact, ...]
    failures: Mapping[str, Failure]
    is_partial: bool = False

    @property
    def count(self) -> int:
        """The number of all files that were compared."""
        return len(self.unread) + len(self.given_up) + self.loaded


def compare_all(_files: int) -> bool:
    """Never stop; an `IsEnough`."""
    return False


def match_files(
    files: Iterable[FileFact],
    loaded: LoadedFiles,
    failures: Callable[[Collection[str]], Mapping[str, Failure]],
    source: LandingSource,
    read_file: ReadFile,
    is_enough: IsEnough = compare_all,
) -> MatchedFiles:
    """Compare files with the ledger: by their listing, and by their content if only their time may be new.

    A file that the storage does not deliver stays unread. `failures` returns the earlier failures of files by path.
    `is_enough` is asked after some thousands of files, and before each file is read; then no further file is.
    """
    new, renewed, unchanged, is_partial = _match_listing(files, loaded, is_enough)
    failed = failures([file.path for file in new]) if new else {}
    given_up = given_up_files(failed, source)
    abandoned = [given_up[file.path] for file in new if is_unchanged(file, given_up)]
    unread = [file for file in new if not is_unchanged(file, given_up)]
    seen: list[FileFact] = []
    touched: list[FileFact] = []
    changed: set[str] = set()
    for file in split_by_age(unread, source)[1]:
        if file.path not in renewed and file.path not in given_up:
            continue
        if is_enough(unchanged + len(new)):
            break
        with suppress(NotReadyError, StorageError):
            content = read_file(file)
            if file.path in given_up and given_up[file.path].checksum == content.checksum:
                touched.append(replace(content, defect=""))
            elif file.path in renewed and loaded.holds(content, only_last=source.replaces):
                seen.append(replace(content, defect=""))
            elif file.path in renewed:
                changed.add(file.path)
    known = {file.path for file in (*seen, *touched)}
    return MatchedFiles(
        unread=tuple(file for file in unread if file.path not in known),
        renewed=frozenset(renewed - known),
        changed=frozenset(changed),
        given_up=_by_path([*abandoned, *(given_up[file.path] for file in touched)]),
        loaded=unchanged + len(seen),
        seen=tuple(seen),
        touched=tuple(touched),
        failures=failed,
        is_partial=is_partial,
    )


def _match_listing(
    files: Iterable[FileFact], loaded: LoadedFiles, is_enough: IsEnough
) -> tuple[tuple[FileFact, ...], set[str], int, bool]:
    """Return (files whose listing the ledger lacks, the paths of those that it knows, the number of all others).

    The last value is whether there are more files, which were not compared.
    """
    unread: list[FileFact] = []
    renewed: set[str] = set()
    count, listed = 0, iter(files)
    while chunk := list(islice(listed, _CHUNK)):
        known = loaded.last_of({file.path for file in chunk})
        new = [file for file in chunk if not is_unchanged(file, known)]
        count += len(chunk) - len(new)
        unread += new
        renewed |= known.keys() & {file.path for file in new}
        if is_enough(count + len(unread)):
            return _by_path(unread), renewed, count, next(listed, None) is not None
    return _by_path(unread), renewed, count, False


def read_listed(landing: Landing, spec: BronzeSpec, file: FileFact) -> FileFact:
    """Return the file with its checksum, and with its defect if it has one; a `ReadFile` of plans."""
    # Imported here: a plan reads few files or none, and the readers of all formats take long to import.
    from millrace.control.landing.inspection import inspect

    return inspect(file, landing, spec)


def given_up_files(failures: Mapping[str, Failure], source: LandingSource) -> dict[str, FileFact]:
    """Return the files that have failed in as many runs as the source allows, or that a person gave up, by path.

    The defect of each says which of the two it was.
    """
    limit = source.max_attempts_per_file
    return {
        path: failure.file
        if failure.given_up
        else replace(failure.file, defect=f"after {limit} attempts ({failure.file.defect})")
        for path, failure in failures.items()
        if failure.given_up or failure.attempts >= limit
    }


def given_up_notes(files: Sequence[FileFact]) -> tuple[str, ...]:
    """Return a note about the given-up files; the defect of each says since when, and why."""
    if not files:
        return ()
    if len(files) == 1:
        return (f"{files[0].path} was given up {files[0].defect}; `lakehouse replay` tries it again",)
    names = _names([f"{file.path} {file.defect}" for file in files])
    return (f"{len(files)} files were given up: {names}; `lakehouse replay` tries them again",)


def empty_notes(files: Sequence[FileFact]) -> tuple[str, ...]:
    """Return a note about loaded files without a byte: a source that failed may have left them."""
    empty = [file.path for file in files if not file.size]
    has = "1 file has" if len(empty) == 1 else f"{len(empty)} files have"
    return (f"{has} 0 bytes, and brought no row: {_names(empty)}",) if empty else ()


def _names(files: Sequence[str]) -> str:
    more = f" and {len(files) - _MAX_NAMES} more, which `lakehouse files` lists" if len(files) > _MAX_NAMES else ""
    return ", ".join(files[:_MAX_NAMES]) + more


def split_by_age(files: Sequence[FileFact], source: LandingSource) -> tuple[list[FileFact], list[FileFact]]:
    """Return (files younger than the source's `min_age`, the others); without a `min_age`, read no clock."""
    if not source.min_age:
        return [], list(files)
    newest_ns = time.time_ns() - int(source.min_age.total_seconds() * 1e9)
    young = [file for file in files if file.mtime_ns > newest_ns]
    return young, [file for file in files if file.mtime_ns <= newest_ns]


def _by_path(files: Iterable[FileFact]) -> tuple[FileFact, ...]:
    return tuple(sorted(files, key=lambda file: file.path))

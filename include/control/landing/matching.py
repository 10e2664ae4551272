"""What lies in the landing, beside what the ledger knows: which files must be read, and which need not."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.landing import Landing, same_listing
from include.control.ledger.events import Failure
from include.control.ledger.loaded_files import LoadedFiles
from include.control.log.batch import FileFact
from include.errors import NotReadyError, StorageError

Look = Callable[[FileFact], FileFact]
"""Reads a listed file through: the same with its checksum, its columns, and its defect if it has one. It raises what
the storage is in the way of: `NotReadyError`, `StorageError`."""

_FEW = 3


@dataclass(frozen=True)
class Matched:
    """What lies in the landing, beside what the ledger knows.

    Attributes:
        unread: files whose listing the ledger does not know, by path.
        renewed: the paths of unread files that were loaded before.
        given_up: files that have failed too often, by path.
        loaded: how many files are listed as they were loaded.
        seen: those of them of which only the time is another one, read through.
        touched: files that were given up of which only the time is another one, read through.
    """

    unread: tuple[FileFact, ...]
    renewed: frozenset[str]
    given_up: tuple[FileFact, ...]
    loaded: int
    seen: tuple[FileFact, ...] = ()
    touched: tuple[FileFact, ...] = ()

    @property
    def listed(self) -> int:
        """How many files there are."""
        return len(self.unread) + len(self.given_up) + self.loaded


def match(listed: Iterable[list[FileFact]], loaded: LoadedFiles) -> Matched:
    """Tell the files that need not be read from those that must be; given up ones are among these.

    Args:
        listed: the files, some thousands at a time.
        loaded: every content that was loaded.
    """
    unread: list[FileFact] = []
    renewed: set[str] = set()
    count = 0
    for files in listed:
        is_known, is_same = loaded.compare(files)
        new = [(file, known) for file, known, same in zip(files, is_known, is_same, strict=True) if not same]
        count += len(files) - len(new)
        unread += [file for file, _ in new]
        renewed |= {file.path for file, known in new if known}
    return Matched(_by_path(unread), frozenset(renewed), (), count)


def known_by_content(
    found: Matched, loaded: LoadedFiles, hopeless: Mapping[str, FileFact], source: LandingSource, look: Look
) -> Matched:
    """What was matched, without the files that were given up, and those that only their time makes new.

    Content decides, so these are read through. A file that the storage does not hand over stays unread.

    Args:
        found: the files by their listing.
        loaded: every content that was loaded.
        hopeless: path -> file, of those that were given up.
        source: where they come from.
        look: reads a file through.
    """
    same: list[FileFact] = []
    given = [hopeless[file.path] for file in found.unread if same_listing(file, hopeless)]
    touched: list[FileFact] = []
    unread = [file for file in found.unread if not same_listing(file, hopeless)]
    for file in split_by_age(unread, source)[1]:
        if file.path not in found.renewed and file.path not in hopeless:
            continue
        with suppress(NotReadyError, StorageError):
            content = look(file)
            if file.path in hopeless and hopeless[file.path].checksum == content.checksum:
                touched.append(replace(content, defect=""))
            elif file.path in found.renewed and loaded.holds(content, only_last=source.replaces):
                same.append(replace(content, defect=""))
    known = {file.path for file in (*same, *touched)}
    return Matched(
        unread=tuple(file for file in unread if file.path not in known),
        renewed=found.renewed - known,
        given_up=_by_path([*given, *(hopeless[file.path] for file in touched)]),
        loaded=found.loaded + len(same),
        seen=_by_path(same),
        touched=_by_path(touched),
    )


def read_through(landing: Landing, spec: BronzeSpec, file: FileFact) -> FileFact:
    """The file with its checksum, and with its defect if it has one."""
    # Imported here: few files ever have to be read for a plan, and readers of all formats take long to import.
    from include.control.landing.inspection import inspect

    return inspect(file, landing, spec)


def given_up(failures: Mapping[str, Failure], source: LandingSource) -> dict[str, FileFact]:
    """path -> file, of those that have failed as many runs as the source allows, or that a person gave up.

    The defect of each says which of the two it was.
    """
    most = source.max_attempts_per_file
    after = f"after {most} attempts ({{}})"
    return {
        path: replace(one.file, defect=one.file.defect if one.given_up else after.format(one.file.defect))
        for path, one in failures.items()
        if one.given_up or one.attempts >= most
    }


def given_up_notes(files: Iterable[FileFact]) -> tuple[str, ...]:
    """What a person must know of files that runs go on without; the defect of each says since when, and why."""
    every = list(files)
    if not every:
        return ()
    if len(every) == 1:
        [file] = every
        return (f"{file.path} was given up {file.defect}; `lakehouse replay` tries it again",)
    named = ", ".join(f"{file.path} {file.defect}" for file in every[:_FEW])
    more = f" and {len(every) - _FEW} more, which `lakehouse files` lists" if len(every) > _FEW else ""
    return (f"{len(every)} files were given up: {named}{more}; `lakehouse replay` tries them again",)


def split_by_age(files: Sequence[FileFact], source: LandingSource) -> tuple[list[FileFact], list[FileFact]]:
    """(files younger than the source's `min_age`, the others). Without a `min_age` no clock is asked."""
    if not source.min_age:
        return [], list(files)
    newest_ns = time.time_ns() - int(source.min_age.total_seconds() * 1e9)
    young = [file for file in files if file.mtime_ns > newest_ns]
    return young, [file for file in files if file.mtime_ns <= newest_ns]


def _by_path(files: Iterable[FileFact]) -> tuple[FileFact, ...]:
    return tuple(sorted(files, key=lambda file: file.path))

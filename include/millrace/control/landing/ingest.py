"""The plan of the landing files of a bronze batch: those of the interval that no winning attempt has loaded yet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from millrace.contracts.interval import Interval
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.earlier_runs import EarlierRuns
from millrace.control.landing.landing import Landing, interval_files, is_as_listed, is_unchanged
from millrace.control.landing.matching import CHANGED_WAY_OUT, ReadFile, match_files, split_by_age
from millrace.control.ledger.events import Failure
from millrace.control.ledger.loaded_files import LoadedFiles
from millrace.control.log.batch import FileFact
from millrace.errors import BadInputError, NotReadyError, StorageError, first_line

_GONE = "is gone"

_MAX_SILENT = 3
"""After so many files in a row without an answer the store counts as down. Each of them took the client's timeout."""


@dataclass(frozen=True)
class FilePlan:
    """The interval's files by what is to be done with them.

    Attributes:
        new: sound files that the next batch loads, within the limits of the spec.
        replaces: whether their rows replace the rows that were loaded before under their names.
        broken: files that cannot be loaded, each with its defect.
        given_up: files that have failed in as many runs as the spec allows; they were not read again.
        attempts: path of a broken file -> the number of runs in which its content failed, with this one.
        unfinished: files that are still being written: too young, or changed while they were read.
        unreachable: files that the storage did not deliver, each with the reason; this is no failed attempt.
        loaded: the number of files that were loaded before.
        seen: loaded files with a new time and the same content; they were read.
        touched: given-up files with a new time and the same content; they were read.
        later: the number of files for the batches after the next one; they were not read yet.
    """

    new: tuple[FileFact, ...] = ()
    replaces: bool = False
    broken: tuple[FileFact, ...] = ()
    given_up: tuple[FileFact, ...] = ()
    attempts: Mapping[str, int] = field(default_factory=dict)
    unfinished: tuple[FileFact, ...] = ()
    unreachable: tuple[FileFact, ...] = ()
    loaded: int = 0
    seen: tuple[FileFact, ...] = ()
    touched: tuple[FileFact, ...] = ()
    later: int = 0


def plan_files(
    spec: BronzeSpec,
    landing: Landing,
    interval: Interval,
    loaded: LoadedFiles,
    earlier: EarlierRuns,
    read_file: ReadFile,
) -> FilePlan:
    """Compare the interval's landing files with the ledger, and read the new files of the next batch.

    Files that may have killed a driver are loaded after all others, in small batches.

    Args:
        spec: the table's spec.
        landing: the landing root.
        interval: the interval.
        loaded: the files that the table has loaded.
        earlier: the failures and the dead attempts of earlier runs.
        read_file: reads a file.

    Raises:
        NotReadyError: the interval's folder does not exist, or the storage delivered none of several files in a row.
        BadInputError: a file that was loaded before has another content now.
    """
    source = spec.landing_source
    matched = match_files(interval_files(spec, landing, interval), loaded, earlier.failures, source, read_file)
    young, settled = split_by_age(matched.unread, source)
    reader = _Reader(read_file)
    if source.on_changed_file == "reject":
        changed = [content for file in settled if file.path in matched.renewed and (content := reader.read(file))]
        if changed:
            raise _changed_file_error(spec, changed, loaded)
    unreachable = {file.path for file in reader.unreachable}

    def order(file: FileFact) -> tuple[float, bool, bool]:
        # Of equal ones, those that were loaded before come first: where they replace rows, they are a batch.
        largest = earlier.largest_batches.get(file.path, math.inf)
        return -largest, file.path in earlier.died_alone, file.path not in matched.renewed

    fresh = sorted((file for file in settled if file.path not in unreachable), key=order)
    whole, growing = _read_one_batch(fresh, source, earlier.largest_batches, landing, reader)
    read = len(whole) + len(growing) + len(reader.unreachable) - len(unreachable)
    sound = [file for file in whole if not file.defect]
    replacing = [file for file in sound if file.path in matched.renewed] if source.replaces else []
    return FilePlan(
        new=tuple(replacing or sound),
        replaces=bool(replacing),
        broken=tuple(file for file in whole if file.defect),
        given_up=matched.given_up,
        attempts={file.path: _attempts(file, matched.failures) for file in whole if file.defect},
        unfinished=(*young, *growing),
        unreachable=tuple(reader.unreachable),
        loaded=matched.loaded,
        seen=tuple(file for file in matched.seen if is_as_listed(file, landing)),
        touched=tuple(file for file in matched.touched if is_as_listed(file, landing)),
        later=len(fresh) - read + (len(sound) - len(replacing) if replacing else 0),
    )


def not_as_loaded(spec: BronzeSpec, files: Iterable[FileFact], landing: Landing, read_file: ReadFile) -> dict[str, str]:
    """Return the path of each file that no longer has the content which a batch loaded -> what has become of it.

    Raises:
        NotReadyError: the landing of the table has no file at all, such as a disk that is not mounted.
    """
    found: dict[str, str] = {}
    for file in files:
        now = landing.file_at(file.path)
        if now is None:
            found[file.path] = _GONE
        elif not (is_unchanged(now, {file.path: file}) or read_file(now).checksum == file.checksum):
            found[file.path] = "has other content now"
    folder = spec.landing_source.landing
    if _GONE in found.values() and next(iter(landing.files(folder, lambda _: True) or ()), None) is None:
        raise NotReadyError(
            f"{spec.table}: {landing.location(folder)} has no file at all, and its last batch must be read again",
            "See whether its disk or share is mounted.",
        )
    return found


class _Reader:
    """Reads files, and collects in `unreachable` those that the storage does not deliver, each with the reason."""

    def __init__(self, read_file: ReadFile) -> None:
        self._read_file = read_file
        self._silent = 0
        self.unreachable: list[FileFact] = []

    def read(self, file: FileFact) -> FileFact | None:
        """Return the file after reading it; None if the storage did not deliver it.

        Raises:
            NotReadyError: the storage delivered none of the last files, so that the others are not worth the wait.
        """
        try:
            content = self._read_file(file)
        except (NotReadyError, StorageError) as error:
            self.unreachable.append(replace(file, defect=first_line(error)))
            self._silent = self._silent + 1 if isinstance(error, NotReadyError) else 0
            if self._silent == _MAX_SILENT:
                raise
            return None
        self._silent = 0
        return content


def _attempts(file: FileFact, failures: Mapping[str, Failure]) -> int:
    before = failures.get(file.path)
    return 1 + (before.attempts if before and before.file.checksum == file.checksum else 0)


def _read_one_batch(
    files: Sequence[FileFact],
    source: LandingSource,
    largest: Mapping[str, int],
    landing: Landing,
    reader: _Reader,
) -> tuple[list[FileFact], list[FileFact]]:
    """Read files until the sound ones fill a batch: return (whole files, files that changed while they were read).

    `largest` says of some files that a batch with them has no others, and how many of them it has at most.
    """
    whole: list[FileFact] = []
    growing: list[FileFact] = []
    count, size, max_size = 0, 0, source.max_bytes_per_batch or math.inf
    most, piece = source.max_files_per_batch, None
    for file in files:
        if count and (count >= most or largest.get(file.path) != piece or size + file.size > max_size):
            break
        content = reader.read(file)
        if content is None:
            continue
        if not is_as_listed(file, landing):
            growing.append(content)
            continue
        whole.append(content)
        if not content.defect:
            count, size, piece = count + 1, size + file.size, largest.get(file.path)
            most = min(source.max_files_per_batch, piece or source.max_files_per_batch)
    return whole, growing


def _changed_file_error(spec: BronzeSpec, changed: list[FileFact], loaded: LoadedFiles) -> BadInputError:
    file = changed[0]
    before = loaded.facts([file.path])[-1]
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    return BadInputError(
        f"{spec.table}: {file.path}{more} was loaded before with other content: {before.size} bytes, "
        f"{_digest(before)}; now {file.size} bytes, {_digest(file)}",
        f"Nothing was loaded. {CHANGED_WAY_OUT}",
    )


def _digest(file: FileFact) -> str:
    return file.checksum if file.checksum.startswith("etag:") else f"sha256 {file.checksum[:12]}"

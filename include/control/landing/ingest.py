"""Which landing files a bronze batch loads: those of the interval that no winning attempt has loaded yet."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from include.contracts.interval import Interval
from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.landing import Landing, files_by_the_thousand, is_as_listed, same_listing
from include.control.landing.matching import Look, given_up, known_by_content, match, split_by_age
from include.control.ledger.events import Failure
from include.control.ledger.loaded_files import LoadedFiles
from include.control.log.batch import FileFact
from include.errors import BadInputError, NotReadyError, StorageError, first_line

_SILENT_IN_A_ROW = 3
"""After so many files without an answer the store is away. Each of them was waited for as long as its client waits."""


@dataclass(frozen=True)
class FilePlan:
    """The interval's files by what is to be done with them.

    Attributes:
        new: sound files that the next batch loads, within the limits of the spec.
        replaces: whether their rows take the place of those that were loaded before under their names.
        broken: files that cannot be loaded, each with its defect.
        given_up: files that have failed as many runs as the spec allows; they were not read again.
        attempts: path of a broken file -> how many runs its content has failed, this one included.
        unfinished: files that are still being written: too young, or changed while they were read.
        unreachable: files that the storage did not hand over, each with the reason; nothing is held against them.
        loaded: how many files were loaded before.
        seen: loaded files whose time is another one since; their content was read to know them.
        touched: files that were given up, likewise.
        later: how many files are left for the batches after the next one; they were not read yet.
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
    failures: Callable[[Collection[str]], Mapping[str, Failure]],
    look: Look,
) -> FilePlan:
    """Match the interval's landing files with what the ledger knows; of the others, look at what one batch loads.

    Args:
        spec: the bronze table.
        landing: where the files lie.
        interval: the interval of the run.
        loaded: every content that was loaded.
        failures: paths -> those of them that could not be loaded before this run.
        look: reads a file through.

    Raises:
        NotReadyError: the interval's folder does not exist, or the storage handed over no file of several in a row.
        BadInputError: a file that was loaded before has other content now.
    """
    source = spec.landing_source
    listed = match(files_by_the_thousand(spec, landing, interval), loaded)
    failed = failures([file.path for file in listed.unread])
    hopeless = given_up(failed, source)
    found = known_by_content(listed, loaded, hopeless, source, look)
    young, settled = split_by_age(found.unread, source)
    reader = _Reader(look)
    if source.on_changed_file == "reject":
        changed = [seen for file in settled if file.path in found.renewed and (seen := reader.read(file))]
        if changed:
            raise BadInputError(_changed_message(spec, changed, loaded))
    out_of_reach = {file.path for file in reader.unreachable}
    fresh = [file for file in settled if file.path not in out_of_reach]
    unread = len(reader.unreachable)
    whole, growing = _look_at_one_batch(_replacing_first(fresh, found.renewed), source, landing, reader)
    looked_at = len(whole) + len(growing) + len(reader.unreachable) - unread
    sound = [file for file in whole if not file.defect]
    replacing = [file for file in sound if file.path in found.renewed] if source.replaces else []
    return FilePlan(
        new=tuple(replacing or sound),
        replaces=bool(replacing),
        broken=tuple(file for file in whole if file.defect),
        given_up=found.given_up,
        attempts={file.path: _attempts(file, failed) for file in whole if file.defect},
        unfinished=(*young, *growing),
        unreachable=tuple(reader.unreachable),
        loaded=found.loaded,
        seen=tuple(file for file in found.seen if is_as_listed(file, landing)),
        touched=tuple(file for file in found.touched if is_as_listed(file, landing)),
        later=len(fresh) - looked_at + (len(sound) - len(replacing) if replacing else 0),
    )


def require_as_loaded(spec: BronzeSpec, files: Iterable[FileFact], landing: Landing, look: Look) -> None:
    """Whether files still hold what a batch loaded, so that its records can be read once more.

    Raises:
        BadInputError: one has other content, or is gone.
    """
    for file in files:
        now = landing.listed(file.path)
        if now is None or not (same_listing(now, {file.path: file}) or look(now).checksum == file.checksum):
            msg = (
                f"{spec.table}: {file.path} changed after a batch had loaded it, before its records were counted\n"
                f"Put the content with {_digest(file)} ({file.size} bytes) back, then run this again "
                "(in Airflow, clear the task)."
            )
            raise BadInputError(msg)


class _Reader:
    """Reads files through, and sets apart those that the storage does not hand over.

    Attributes:
        unreachable: these files, each with the reason.
    """

    def __init__(self, look: Look) -> None:
        self._look = look
        self._silent = 0
        self.unreachable: list[FileFact] = []

    def read(self, file: FileFact) -> FileFact | None:
        """The file read through; None where the storage did not hand it over.

        Raises:
            NotReadyError: nor did it several files before, so that the others are not worth the wait.
        """
        try:
            found = self._look(file)
        except (NotReadyError, StorageError) as error:
            self.unreachable.append(replace(file, defect=first_line(error)))
            self._silent = self._silent + 1 if isinstance(error, NotReadyError) else 0
            if self._silent == _SILENT_IN_A_ROW:
                raise
            return None
        self._silent = 0
        return found


def _replacing_first(files: Sequence[FileFact], renewed: Collection[str]) -> list[FileFact]:
    """Names that were loaded before stand first: where they replace rows, they make a batch of their own."""
    return sorted(files, key=lambda file: file.path not in renewed)


def _attempts(file: FileFact, failures: Mapping[str, Failure]) -> int:
    before = failures.get(file.path)
    return 1 + (before.attempts if before and before.file.checksum == file.checksum else 0)


def _look_at_one_batch(
    files: Sequence[FileFact], source: LandingSource, landing: Landing, reader: _Reader
) -> tuple[list[FileFact], list[FileFact]]:
    """Look at files until those that can be loaded fill a batch: (whole files, those that changed meanwhile)."""
    whole: list[FileFact] = []
    growing: list[FileFact] = []
    count, size, most = 0, 0, source.max_bytes_per_batch or math.inf
    for file in files:
        if count >= source.max_files_per_batch or (count and size + file.size > most):
            break
        found = reader.read(file)
        if found is None:
            continue
        if not is_as_listed(file, landing):
            growing.append(found)
            continue
        whole.append(found)
        if not found.defect:
            count, size = count + 1, size + file.size
    return whole, growing


def _changed_message(spec: BronzeSpec, changed: list[FileFact], loaded: LoadedFiles) -> str:
    file = changed[0]
    before = loaded.facts([file.path])[-1]
    more = f" (and {len(changed) - 1} more)" if len(changed) > 1 else ""
    return (
        f"{spec.table}: {file.path}{more} was loaded before with other content: {before.size} bytes, "
        f"{_digest(before)}; now {file.size} bytes, {_digest(file)}\nNothing was loaded. "
        "Have the source deliver corrections under a new name, put the old content back, or set "
        "source.on_changed_file to append_new_version (the old rows stay) or replace (they go)."
    )


def _digest(file: FileFact) -> str:
    return file.checksum if file.checksum.startswith("etag:") else f"sha256 {file.checksum[:12]}"

"""Landing files of subjects: kept, rewritten without their records, or deleted, as the spec of their table says."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from enum import StrEnum
from tempfile import TemporaryFile
from typing import BinaryIO, cast

import pyarrow as pa

from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.landing.formats.compression import UNPACKING_ERRORS
from millrace.control.landing.landing import Landing, LandingFile, landing_of, plain_folder
from millrace.control.leases.leases import Leases
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact
from millrace.control.log.stored_tables import is_table
from millrace.control.storage.stored_bytes import sha256_of
from millrace.erase.feeds import Feeds, most_careful
from millrace.erase.search import FileSearch, Keys, UnreadFileError
from millrace.erase.stripping import Stripping, key_fields
from millrace.erase.subjects import Subjects
from millrace.errors import StorageError, first_line

_UNREADABLE = (ValueError, FileNotFoundError, StorageError, pa.ArrowException, *UNPACKING_ERRORS)


class LandingAction(StrEnum):
    """What happens to a landing file: a kept one is left for a person."""

    KEEP = "keep"
    REWRITE = "rewrite"
    DELETE = "delete"


@dataclass(frozen=True)
class LandingWork:
    """A landing file that has something of the subjects.

    Attributes:
        path: its path in the ledger.
        action: what is to be done with it, or was.
        records: how many of its records have the key of a subject; 0 if it only names one, or cannot be read.
        why: why it is kept, or what of a rewritten one still names a subject; else empty.
    """

    path: str
    action: LandingAction
    records: int = 0
    why: str = ""


def erase_landing(
    spec: BronzeSpec,
    subjects: Subjects,
    root: str,
    specs: Mapping[str, AnySpec],
    ledger: Ledger,
    leases: Leases,
) -> Iterator[LandingWork]:
    """Rewrite or delete the files of a source, as its spec says; yield each file that had something of the subjects.

    Files of the folder that the table does not load stay as they are; what other tables load as well is treated as the
    most careful of them says. Each batch of these tables must be closed: one of a dead driver reads its files again.
    Nobody loads a file of them meanwhile. A rewritten file counts as loaded, so that no run loads it again. After a
    crash the same call continues.

    Args:
        spec: the bronze table of the source, which loads landing files.
        subjects: the subjects.
        root: the landing root.
        specs: table -> spec, of which others may load the same files.
        ledger: the ledger.
        leases: the leases of this run.

    Raises:
        NotReadyError: the storage does not answer, or a file changes at the same time.
        LeaseLostError: a table was in use for too long.
    """
    landing, feeds = landing_of(spec.landing_source.landing, root), Feeds(specs, root)
    with ExitStack() as held:
        for table in feeds.beside(spec):
            held.enter_context(leases.table(table))
        for file, loaders in _files_of(spec, subjects, landing, feeds):
            with TemporaryFile() as new:
                work = _work_on(file, spec, subjects, landing, most_careful(loaders), content := cast(BinaryIO, new))
                if work.action is not LandingAction.KEEP:
                    work = _carry_out(work, file, content, landing, [each.table for each in loaders], ledger)
            yield work


def _carry_out(
    work: LandingWork, file: FileFact, new: BinaryIO, landing: Landing, loaders: Collection[str], ledger: Ledger
) -> LandingWork:
    reason = f"an erasure has taken out {work.records:,} of its records"

    def announce(after: FileFact, event: FileEvent = FileEvent.REWRITTEN) -> None:
        for table in loaders:
            if is_table(path := ledger.paths.table(table)):
                ledger.record_erased(event, table, table_id(path), before, after, reason)

    try:
        before = file
        if not file.checksum:  # The listing of a bucket has one.
            with landing.open(file.path) as content:
                before = replace(file, checksum=sha256_of(content))
        if work.action is LandingAction.DELETE:
            reason = f"an erasure has deleted it: {work.records:,} of its records were of subjects"
            landing.delete(before, lambda: announce(before, FileEvent.DELETED))
        else:
            new.seek(0)
            landing.replace(before, new, announce)
    except StorageError as error:
        return replace(work, action=LandingAction.KEEP, why=first_line(error))
    return work


def _files_of(
    spec: BronzeSpec, subjects: Subjects, landing: Landing, feeds: Feeds
) -> Iterator[tuple[FileFact, list[BronzeSpec]]]:
    """Yield the files of a table that have something of the subjects, or cannot be searched, and all that load them."""
    source = spec.landing_source
    keys = {*key_fields(spec, subjects.kind), *spec.subject_keys}
    search = FileSearch(subjects, Keys(keys, anywhere=source.format == "csv"))
    for file in list(landing.files(plain_folder(source.landing), lambda _: True) or ()):
        loaders = feeds.loaders(landing.location(file.path))
        if spec.table not in (each.table for each in loaders):
            continue
        try:
            with landing.open(file.path) as content:
                found = search.search(file.path, content, source.encoding)
        except (UnreadFileError, FileNotFoundError, StorageError):
            yield file, loaders
            continue
        if found:
            yield file, loaders


def _work_on(
    file: FileFact, spec: BronzeSpec, subjects: Subjects, landing: Landing, deciding: BronzeSpec, new: BinaryIO
) -> LandingWork:
    """Write the file anew to `new`, and return what is to be done with it, as the deciding spec says."""
    name = LandingFile(landing, file.path).name
    try:
        with landing.open(file.path) as stored:
            records = Stripping(spec, subjects).strip(name, stored, new)
    except _UNREADABLE as error:
        return LandingWork(
            file.path, LandingAction.KEEP, why=subjects.hide(f"it cannot be rewritten: {first_line(error)}")
        )
    if not records:
        return LandingWork(
            file.path, LandingAction.KEEP, why="no record has the key, but something in it names a subject"
        )
    action = LandingAction(deciding.erase.landing_files)
    why = f"erase.landing_files of {deciding.table} is keep" if action is LandingAction.KEEP else ""
    if action is LandingAction.REWRITE:
        new.seek(0)
        with open(new.fileno(), "rb", closefd=False) as again:
            is_left = FileSearch(subjects, Keys()).search(file.path, again)
        if is_left:
            why = "something that stays in it still names a subject"
    return LandingWork(file.path, action, records, why)

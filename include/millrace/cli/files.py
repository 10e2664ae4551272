"""`lakehouse files`: list the landing files of a bronze table from the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from rich.table import Table
from rich.text import Text

from millrace.cli.catalog import command_catalog
from millrace.cli.views import MISSING, count, new_table, size
from millrace.contracts.counted import counted
from millrace.contracts.file_status import FileStatus
from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.contracts.time_format import SECOND
from millrace.contracts.visible_text import visible
from millrace.control.landing.file_states import FileState, file_states
from millrace.control.landing.landing import Landing, landing_of
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.delta_log import latest_version
from millrace.errors import NotReadyError, StorageError, UnknownNameError
from millrace.paths import LakehousePaths
from millrace.settings import Settings

_CHUNK = 1 << 20
_NUMBERS = ("size", "tries", "batch", "version", "read", "written", "rescued", "quarantined")
_COLOUR = {FileStatus.LOADED: "green", FileStatus.PLANNED: "yellow", FileStatus.UNREACHABLE: "yellow"}


def select_files(
    table: str, settings: Settings, intervals: Sequence[Interval], status: FileStatus | None
) -> list[FileState]:
    """Return the table's files in the ledger, for these intervals (all if empty) and this status (any if None).

    Raises:
        SpecError: a spec is wrong, or there is no such bronze table.
    """
    spec = command_catalog(settings.tables).spec(table)
    if not isinstance(spec, BronzeSpec):
        raise UnknownNameError(f"{table} loads no files", f"It reads {', '.join(spec.source_tables)}: ask for those.")
    if spec.reads_kafka:
        cause = f"{table} loads no files: it reads {spec.source.label}"
        raise UnknownNameError(cause, "Its batches and their offsets are in ops.batches.")
    landing = landing_of(spec.landing_source.landing, settings.landing)
    files = list_files(table, settings.paths, _storage_check(landing))
    starts = {interval.start for interval in intervals}
    return [file for file in files if status in (None, file.status) and (not starts or file.interval.start in starts)]


def _storage_check(landing: Landing) -> Callable[[str], bool]:
    """Return a function that tests whether a file can be read to its end now, or does not exist any more.

    After the first file without an answer it asks for no more files: each of them could take the client's timeout.
    """
    is_silent = False

    def is_reachable(path: str) -> bool:
        nonlocal is_silent
        if is_silent:
            return False
        try:
            with landing.open(path) as file:
                while file.read(_CHUNK):
                    pass
        except FileNotFoundError:
            return True
        except NotReadyError:
            is_silent = True
            return False
        except StorageError:
            return False
        return True

    return is_reachable


def list_files(
    table: str,
    paths: LakehousePaths,
    is_reachable: Callable[[str], bool] = lambda _: False,
    names: Collection[str] = (),
) -> list[FileState]:
    """Return the `file_states` of a bronze table, of all files or those in `names`; none if it was never built."""
    if latest_version(paths.table(table)) < 0:
        return []
    return file_states(Ledger(paths), table, table_id(paths.table(table)), is_reachable, names)


def file_table(files: Iterable[FileState]) -> Table:
    """Return one row per file; the reason of a failure is below its name."""
    table = new_table("file", "status", "seen", *_NUMBERS, numbers=_NUMBERS)
    for file in files:
        name = Text(visible(f"{file.path}\n  {file.reason}" if file.reason else file.path))
        counts = (str(file.tries), count(file.batch_seq), count(file.version))
        rows = (count(getattr(file.rows, column)) if file.rows else MISSING for column in _NUMBERS[-4:])
        status = Text(file.status, style=_COLOUR.get(file.status, "red"))
        table.add_row(name, status, f"{file.seen_at:{SECOND}}", size(file.size), *counts, *rows)
    return table


def file_summary(files: Sequence[FileState]) -> str:
    """Return the number of files by status.

    >>> file_summary([])
    '0 files'
    """
    counts = [(status, sum(file.status is status for file in files)) for status in FileStatus]
    parts = ", ".join(f"{number:,} {status}" for status, number in counts if number)
    return counted(len(files), "file") + (f": {parts}" if parts else "")

"""What `lakehouse files` shows: the landing files of a bronze table, as the ledger knows them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from include.cli.catalog import command_catalog
from include.cli.views import MISSING, count, new_table, size
from include.contracts.file_status import FileStatus
from include.contracts.interval import Interval
from include.contracts.spec.table_spec import BronzeSpec
from include.contracts.time_format import SECOND
from include.control.landing.file_states import FileState, file_states
from include.control.landing.landing import Landing, landing_of
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.control.log.delta_log import latest_version
from include.errors import NotReadyError, StorageError, UnknownNameError
from include.paths import LakehousePaths
from include.settings import Settings

_CHUNK = 1 << 20
_NUMBERS = ("size", "tries", "batch", "version", "read", "written", "rescued", "quarantined")
_COLOUR = {FileStatus.LOADED: "green", FileStatus.PLANNED: "yellow", FileStatus.UNREACHABLE: "yellow"}


def select_files(
    table: str, settings: Settings, intervals: Sequence[Interval], status: FileStatus | None
) -> list[FileState]:
    """The table's files as the ledger knows them: those of the intervals (all for none), in one status (any for None).

    Raises:
        SpecError: a spec is wrong, or there is no such bronze table.
    """
    spec = _required_bronze(table, settings.tables)
    landing = landing_of(spec.landing_source.landing, settings.landing)
    files = list_files(table, settings.paths, _Reach(landing).includes)
    starts = {interval.start for interval in intervals}
    return [file for file in files if status in (None, file.status) and (not starts or file.interval.start in starts)]


class _Reach:
    """Which of the files that the storage did not deliver it delivers by now.

    Once it does not deliver one, no more are asked for: each might be waited for.
    """

    def __init__(self, landing: Landing) -> None:
        self._landing = landing
        self._is_silent = False

    def includes(self, path: str) -> bool:
        """Whether a file can be read to its end, or does not exist any more."""
        if self._is_silent:
            return False
        try:
            with self._landing.open(path) as file:
                while file.read(_CHUNK):
                    pass
        except FileNotFoundError:
            return True
        except NotReadyError:
            self._is_silent = True
            return False
        except StorageError:
            return False
        return True


def list_files(
    table: str, paths: LakehousePaths, is_reachable: Callable[[str], bool] = lambda _: False
) -> list[FileState]:
    """All files of a bronze table, as `file_states` knows them; none where it was never built."""
    if latest_version(paths.table(table)) < 0:
        return []
    return file_states(Ledger(paths), table, table_id(paths.table(table)), is_reachable)


def file_table(files: Iterable[FileState]) -> Table:
    """A row a file; why it could not be loaded stands beneath its name."""
    table = new_table("file", "status", "seen", *_NUMBERS, numbers=_NUMBERS)
    for file in files:
        name = Text(f"{file.path}\n  {file.reason}" if file.reason else file.path)
        counts = (str(file.tries), count(file.batch_seq), count(file.version), *_rows(file))
        status = Text(file.status, style=_COLOUR.get(file.status, "red"))
        table.add_row(name, status, f"{file.seen_at:{SECOND}}", size(file.size), *counts)
    return table


def file_summary(files: Sequence[FileState]) -> str:
    """How many files there are in each status.

    >>> file_summary([])
    '0 files'
    """
    counts = [(status, sum(file.status is status for file in files)) for status in FileStatus]
    parts = ", ".join(f"{number:,} {status}" for status, number in counts if number)
    noun = "file" if len(files) == 1 else "files"
    return f"{len(files):,} {noun}" + (f": {parts}" if parts else "")


def _rows(file: FileState) -> tuple[str, ...]:
    rows = file.rows
    return tuple(count(getattr(rows, name)) if rows else MISSING for name in _NUMBERS[-4:])


def _required_bronze(table: str, folder: Path) -> BronzeSpec:
    spec = command_catalog(folder).spec(table)
    if not isinstance(spec, BronzeSpec):
        raise UnknownNameError(f"{table} loads no files", f"It reads {', '.join(spec.source_tables)}: ask for those.")
    if spec.reads_kafka:
        raise UnknownNameError(
            f"{table} loads no files: it reads {spec.source.label}", "Its batches and their offsets are in ops.batches."
        )
    return spec

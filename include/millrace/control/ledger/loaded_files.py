"""The file contents that a table has loaded.

A driver keeps them in memory as Arrow tables between its plans; the next plan reads only the events that were appended
in the meantime. For a table with a long history, only those data files of the ledger are read that can contain the
requested paths.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from millrace.control.events.conditions import Among
from millrace.control.events.event_files import RECORDED_IN
from millrace.control.ledger.events import BATCHES, FILES, NO_TOKEN, BatchEvent, FileEvent
from millrace.control.ledger.ops_table import EventQuery
from millrace.control.log.batch import FileFact

_CONTENT = ("size", "mtime_ns", "checksum")
_PLANNED = pa.schema(
    [
        pa.field(RECORDED_IN, pa.int64()),
        FILES.field("batch_seq"),
        ("token", pa.dictionary(pa.int32(), pa.string())),
        FILES.field("path"),
        *map(FILES.field, _CONTENT),
    ]
)
"""The columns of planned files."""


def planned_files_query(table_id: str) -> EventQuery:
    """Return the query for the planned, seen and rewritten files of a table in `ops.files`."""
    is_planned = Among(frozenset([FileEvent.PLANNED, FileEvent.SEEN, FileEvent.REWRITTEN]))
    return EventQuery(_PLANNED, (("event", is_planned), ("table_id", Among(frozenset([table_id])))))


def undone_query(table_id: str) -> EventQuery:
    """Return the query for the batches that restores have undone, or redone, in `ops.batches`."""
    kinds = Among(frozenset([BatchEvent.UNDONE, BatchEvent.UNDONE_FOR_GOOD, BatchEvent.REDONE]))
    schema = pa.schema([BATCHES.field(name) for name in ("event", "token", "version")])
    return EventQuery(schema, (("event", kinds), ("table_id", Among(frozenset([table_id])))))


def winners_query(table_id: str) -> EventQuery:
    """Return the query for the tokens of the attempts that became batches of a table, in `ops.batches`."""
    is_committed = Among(frozenset([BatchEvent.COMMITTED]))
    schema = pa.schema([BATCHES.field("token")])
    return EventQuery(schema, (("event", is_committed), ("table_id", Among(frozenset([table_id])))))


@dataclass(frozen=True, eq=False)
class LoadedFiles:
    """The file contents that winning attempts loaded into a table, read from the ledger for the requested paths.

    Attributes:
        read_planned: returns, for some paths, the planned files of the data files that can contain them.
        read_winners: returns, for some attempts (token -> number of the batch), the tokens that became batches.
        read_undone: returns the tokens of the batches that a restore has undone, and whose files can be loaded again.
        facts: returns, for some paths, every content that was loaded under them, oldest first.
    """

    read_planned: Callable[[Collection[str]], Iterable[pa.Table]] = field(repr=False)
    read_winners: Callable[[Mapping[str, int | None]], Collection[str]] = field(repr=False)
    read_undone: Callable[[], Collection[str]] = field(repr=False)
    facts: Callable[[Collection[str]], list[FileFact]] = field(repr=False)

    def last_of(self, paths: Collection[str]) -> dict[str, FileFact]:
        """Return the content that was last loaded under each of these paths, without paths that were never loaded."""
        files = self._of(paths)
        columns = (files[name].to_pylist() for name in ("path", *_CONTENT))
        return {file.path: file for file in map(FileFact, *columns)}

    def holds(self, file: FileFact, *, only_last: bool) -> bool:
        """Whether the content of a file was loaded under its path; with `only_last`, as the last one."""
        checksums = self._of([file.path])["checksum"].to_pylist()
        return file.checksum in (checksums[-1:] if only_last else checksums)

    def open_attempts(self, paths: Collection[str]) -> dict[str, dict[str, int]]:
        """Return path -> token and number of each attempt that planned it after the last one that won, oldest first."""
        planned = self._planned(paths)
        columns = [planned[name].to_pylist() for name in ("path", "token", "batch_seq")]
        won = self.read_winners(dict(zip(*columns[1:], strict=True)))
        attempts: dict[str, dict[str, int]] = {}
        for path, token, number in zip(*columns, strict=True):
            if token in won or token == NO_TOKEN:
                attempts.pop(path, None)
            else:
                attempts.setdefault(path, {})[token] = number
        return attempts

    def _of(self, paths: Collection[str]) -> pa.Table:
        """Return the loaded files with these paths, oldest first."""
        files = self._planned(paths)
        numbers = dict(zip(files["token"].to_pylist(), files["batch_seq"].to_pylist(), strict=True))
        won, undone = {*self.read_winners(numbers)}, {*self.read_undone()}
        kept = _with_tokens(files, {NO_TOKEN, *won - undone})
        if not won & undone:
            return kept
        # A file that was only seen again with the same content counts as loaded while that content does.
        loaded = {content for content in zip(*_contents(_with_tokens(kept, won)), strict=True)}
        return kept.filter(pa.array([content in loaded for content in zip(*_contents(kept), strict=True)], pa.bool_()))

    def _planned(self, paths: Collection[str]) -> pa.Table:
        """Return the planned and seen files with these paths, oldest first."""
        wanted = pa.array(paths, pa.string())
        planned = [files.filter(pc.is_in(files["path"], wanted)) for files in self.read_planned(paths)]
        return pa.concat_tables([_PLANNED.empty_table(), *planned]).sort_by(RECORDED_IN)


def _with_tokens(files: pa.Table, tokens: Collection[str]) -> pa.Table:
    return files.filter(pc.is_in(files["token"].cast(pa.string()), pa.array(tokens, pa.string())))


def _contents(files: pa.Table) -> tuple[list[str], list[str]]:
    return files["path"].to_pylist(), files["checksum"].to_pylist()

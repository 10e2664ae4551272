"""One append-only table of the ledger."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from include.clock import Clock, utc_now
from include.contracts.lake_path import LakePath
from include.control.events.conditions import Among, Condition, Span, may_meet
from include.control.events.event_files import read_events
from include.control.events.event_log import EventLog
from include.control.events.log_state import EventFile
from include.control.leases.store import ledger_lease
from include.control.ledger.questions import Answer, Question, Rows
from include.control.log.stored_tables import options_of
from include.control.storage.looks import look_again
from include.errors import first_line
from include.paths import LakehousePaths

log = logging.getLogger(__name__)

FILES_WORTH_COMPACTING = 32
"""Each append is a file; from so many about a table on, whoever appends puts them together."""

_FILE_BYTES = 8 * 1024**2
"""A file of this size is full: what was put together once is not written again and again."""

_KEEP_REPLACED = timedelta(hours=1)
"""How long a file outlives its being put together with others, for those who are about to read it."""

_COMMITS_A_CHECKPOINT = 10
"""Whoever opens a table reads all commits since its last checkpoint."""

_CONFIGURATION = {
    "delta.checkpointInterval": str(_COMMITS_A_CHECKPOINT),
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}

_ORDERED = ("recorded_at", "event", "table_id", "batch_seq", "version", "path", "interval_start")
"""The columns whose least and greatest value are kept of each data file; of a long text they would fill the log."""

_PARTS = 16
"""Whoever looks for the newest events looks through a data file in so many parts."""

# Somebody else may have made the table, or said the same, at this moment.
_when_another_writer_won = retry(
    retry=retry_if_exception_type(CommitFailedError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)

_COMMITS_A_CLEAN_UP = 100
"""The log of a table with few events about each of many tables is cleaned up so often."""


class OpsTable:
    """Events of one kind, partitioned by the table that they are about.

    Data files never change: what was asked of one is kept until it goes, so that asking again costs what was appended
    since. The events themselves are not kept, for there may be millions. The table keeps itself small: every so many
    appends its files are put together, and those that were replaced before are deleted.

    Args:
        path: its folder.
        schema: its columns.
        keep: how long events are kept; for ever where it is left out.
        lease_store: the folder of leases, for a store without conditional puts; see `Settings.lease_store`.
        clock: returns the time at which events are recorded.
    """

    def __init__(
        self,
        path: LakePath,
        schema: pa.Schema,
        keep: timedelta | None = None,
        *,
        lease_store: Path | None = None,
        clock: Clock = utc_now,
    ) -> None:
        self._path = path
        self._keep = keep
        self._lease_store = lease_store
        self._clock = clock
        self._schema = schema
        self._ordered = [name for name in _ORDERED if name in schema.names]
        self._log = EventLog(path, self._ordered, self._create, under_lease=lease_store is not None)
        self._answers: dict[tuple[str, Question[Any]], dict[LakePath, Any]] = {}

    @classmethod
    def of(cls, paths: LakehousePaths, name: str, schema: pa.Schema, keep: timedelta | None = None) -> Self:
        """Return the table `ops.<name>` of a lakehouse."""
        return cls(paths.ops(name), schema, keep, lease_store=paths.lease_store)

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append `events` in one commit; nothing is written for none."""
        if not events:
            return
        with ledger_lease(self._path, self._lease_store):
            version = self._log.append(self._recorded(events))
        if version % _COMMITS_A_CHECKPOINT == 0:
            self._tidy(version)

    def append_once(self, events: Sequence[dict[str, Any]], key: str) -> bool:
        """Append `events` in one commit, unless something was appended under `key` before; says whether they were.

        Of several writers at the same time one wins: the commit carries `key` as Delta's application id. Nothing is
        written for none.
        """
        if not events:
            return False
        with ledger_lease(self._path, self._lease_store):
            version = self._log.append_once(self._recorded(events), key)
        if version is not None and version % _COMMITS_A_CHECKPOINT == 0:
            self._tidy(version)
        return version is not None

    def _recorded(self, events: Sequence[dict[str, Any]]) -> pa.Table:
        """Return the events as rows; an event without the time at which it was recorded is recorded now."""
        return pa.Table.from_pylist([{"recorded_at": self._clock(), **event} for event in events], self._schema)

    def compact(self, table: str) -> bool:
        """Put the many small files about `table` together; says whether there were as many as that is worth it for.

        Events stay as they are, but those that are older than the table keeps them. What somebody else does at the same
        time is left to them.
        """
        with ledger_lease(self._path, self._lease_store):
            files, limit = self._files(table), self._clock() - self._keep if self._keep else None
            small = [file for file in files if file.size < _FILE_BYTES]
            if len(small) < FILES_WORTH_COMPACTING:
                return False
            outdated = [file for file in files if limit and file not in small and _latest_of(file) < limit]
            held = [read_events(file.path, self._schema, table) for file in small]
            events = pa.Table.from_batches((piece for pieces in held for piece in pieces), self._schema)
            kept = events.filter(pc.greater_equal(events["recorded_at"], limit)) if limit else events
            self._log.replace([*small, *outdated], kept.sort_by("recorded_at"))
            return True

    def _tidy(self, version: int) -> None:
        """Put files together, delete those that were replaced long enough ago, and sum the log up."""
        try:
            numbers = Counter(file.table for file in self._log.files())
            many = [table for table, number in numbers.items() if number >= FILES_WORTH_COMPACTING]
            is_changed = any([self.compact(table) for table in many])
            if is_changed or version % _COMMITS_A_CLEAN_UP == 0:
                self._log.clean_up(_KEEP_REPLACED)
            self._log.sum_up()
        except Exception as error:  # noqa: BLE001  the events are written: whoever wrote them goes on
            log.warning("%s: a later append tidies it up: %s", self._path, first_line(error))

    @_when_another_writer_won
    def _create(self) -> None:
        """Make the table, unless somebody else does at the same time."""
        DeltaTable.create(
            str(self._path),
            self._schema,
            mode="ignore",
            partition_by=["table"],
            configuration=self._configuration(),
            storage_options=options_of(self._path),
        )
        look_again()

    def events(self, table: str, columns: Sequence[str] = (), **equals: str) -> list[dict[str, Any]]:
        """The events about `table` whose columns equal `equals`, oldest first; kept, so there should be few.

        Args:
            table: the table that the events are about.
            columns: the columns to give, all for none.
            equals: column -> the value that it must have.
        """
        question = self._rows(columns, {column: Among(frozenset([value])) for column, value in equals.items()})
        return self._oldest_first(self.answers(table, question).values(), columns)

    def find(self, table: str, columns: Sequence[str] = (), **wanted: Collection[Any] | Span) -> list[dict[str, Any]]:
        """As `events`, of what is not asked again: nothing of it is kept.

        Args:
            table: the table that the events are about.
            columns: the columns to give, all for none.
            wanted: column -> the values of which it must have one, or the span in which it must lie; data files and
                row groups in which no event can be meant are not read.
        """
        conditions = _conditions(wanted)
        question = self._rows(columns, conditions)
        found = [self._ask(file.path, table, question, conditions) for file in self._files_with(table, conditions)]
        return self._oldest_first(found, columns)

    def downward(
        self, table: str, column: str, columns: Sequence[str], upto: Any = None, **wanted: Collection[Any]
    ) -> Iterator[dict[str, Any]]:
        """The events from the greatest value of a column down, of one value the one that was recorded last first.

        Of history hardly more is read than is taken.

        Args:
            table: the table that the events are about.
            column: a column of numbers or times.
            columns: the columns to give.
            upto: the greatest value; the greatest that there is for None.
            wanted: column -> the values of which it must have one.
        """
        ends = [ends for file in self._files(table) for ends in file.ends([column]).values()]
        stops = {first + (last - first) * part // _PARTS for first, last in ends for part in range(_PARTS)}
        below = sorted((stop for stop in stops if upto is None or stop < upto), reverse=True)
        taken, many = 0, 1
        while True:
            # The last look has no lower end: a data file may not state its own.
            least = below[taken] if taken < len(below) else None
            found = self.find(table, (*columns, column), **wanted, **{column: Span(least, upto)})
            new = [row for row in reversed(found) if taken == 0 or row[column] != upto]
            yield from sorted(new, key=itemgetter(column), reverse=True)
            if least is None:
                return
            upto, taken, many = least, taken + many, 2 * many

    def answers(
        self, table: str, question: Question[Answer], **wanted: Collection[Any] | Span
    ) -> dict[LakePath, Answer]:
        """data file about `table` -> what it says; a file is read once for a question.

        Args:
            table: the table that the events are about.
            question: what is asked.
            wanted: column -> what it holds in events that matter, as in `find`: data files without one are left out.
        """
        files = [file.path for file in self._files(table)]
        kept = self._answers.get((table, question), {})
        known = {file: kept[file] for file in files if file in kept}
        asked = [file.path for file in self._files_with(table, _conditions(wanted))]
        self._answers[table, question] = known | {
            file: self._ask(file, table, question) for file in asked if file not in known
        }
        return {file: self._answers[table, question][file] for file in asked}

    def _files(self, table: str) -> list[EventFile]:
        return [file for file in self._log.files() if file.table == table]

    def _files_with(self, table: str, conditions: Mapping[str, Condition]) -> list[EventFile]:
        """The data files in which an event may meet the conditions."""
        return [file for file in self._files(table) if may_meet(conditions, file.ends(conditions))]

    def _ask(
        self, file: LakePath, table: str, question: Question[Answer], conditions: Mapping[str, Condition] = {}
    ) -> Answer:
        wanted = pa.schema([field for field in self._schema if field.name in question.columns])
        return question.answer(read_events(file, wanted, table, conditions))

    def _configuration(self) -> dict[str, str | None]:
        return {**_CONFIGURATION, "delta.dataSkippingStatsColumns": ",".join(self._ordered)}

    def _rows(self, columns: Sequence[str], conditions: Mapping[str, Condition]) -> Rows:
        wanted = [field for field in self._schema if not columns or field.name in (*columns, "recorded_at")]
        return Rows(pa.schema(wanted), tuple(conditions.items()))

    def _oldest_first(self, found: Iterable[pa.Table], columns: Sequence[str]) -> list[dict[str, Any]]:
        tables = list(found)
        if not tables:
            return []
        rows: list[dict[str, Any]] = (
            pa.concat_tables(tables).sort_by("recorded_at").select(columns or self._schema.names).to_pylist()
        )
        return rows


def _conditions(wanted: Mapping[str, Collection[Any] | Span]) -> dict[str, Condition]:
    return {name: one if isinstance(one, Span) else Among(frozenset(one)) for name, one in wanted.items()}


def _latest_of(file: EventFile) -> datetime:
    return datetime.fromisoformat(file.greatest["recorded_at"])

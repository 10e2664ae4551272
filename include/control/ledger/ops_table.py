"""One append-only table of the ledger, written and read by delta-rs only."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake.exceptions import CommitFailedError
from tenacity import retry, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from include.contracts.lake_path import LakePath
from include.control.leases.store import ledger_lease
from include.control.ledger.event_files import read_events
from include.control.ledger.event_log import EventFile, EventLog
from include.control.ledger.questions import Answer, Question, Rows, Values
from include.control.log.stored_tables import open_table, options_of
from include.control.log.table_queries import identifiers, moment, query_columns, texts
from include.errors import first_line

log = logging.getLogger(__name__)

FILES_WORTH_COMPACTING = 32
"""Each append is a file; from so many about a table on, whoever appends puts them together."""

_FILE_BYTES = 8 * 1024**2
"""A file of this size is full: what was put together once is not written again and again."""

_EVENTS_A_GROUP = 4096
"""So many lie together in a compacted file, and can be left unread."""

_KEEP_REPLACED = timedelta(hours=1)
"""How long a file outlives its being put together with others, for those who are about to read it."""

_COMMITS_A_CHECKPOINT = 10
"""Whoever opens a table reads all commits since its last checkpoint."""

_CONFIGURATION = {
    "delta.checkpointInterval": str(_COMMITS_A_CHECKPOINT),
    "delta.logRetentionDuration": "interval 1 days",
    "delta.deletedFileRetentionDuration": "interval 1 days",
}

_ORDERED = ("recorded_at", "batch_seq", "version", "path")
"""The columns whose least and greatest value are kept of each data file; of a long text they would fill the log."""

_PRUNING = {"event", "token"}
"""The columns of so few values that they are kept of each data file, to say which ones need not be read."""

# Somebody else may have made the table, or said the same, at this moment.
_when_another_writer_won = retry(
    retry=retry_if_exception_type(CommitFailedError),
    stop=stop_after_attempt(8),
    wait=wait_random_exponential(multiplier=0.05, max=1),
    reraise=True,
)


class OpsTable:
    """Events of one kind, partitioned by the table that they are about.

    Data files never change: what was asked of one is kept until it goes, so that asking again costs what was appended
    since. The events themselves are not kept, for there may be millions. The table keeps itself small: every so many
    appends its files are put together, and those that were replaced before are deleted.

    Args:
        path: its folder.
        schema: its columns.
        keep: how long events are kept; for ever where it is left out.
    """

    def __init__(self, path: LakePath, schema: pa.Schema, keep: timedelta | None = None) -> None:
        self._path = path
        self._keep = keep
        self._schema = schema
        self._ordered = [name for name in _ORDERED if name in schema.names]
        self._log = EventLog(path, self._ordered, self._create)
        self._answers: dict[tuple[str, Question[Any]], dict[LakePath, Any]] = {}

    def append(self, events: Sequence[dict[str, Any]]) -> None:
        """Append `events` in one commit; nothing is written for none."""
        if not events:
            return
        with ledger_lease(self._path):
            version = self._log.append(pa.Table.from_pylist(list(events), schema=self._schema))
        if version % _COMMITS_A_CHECKPOINT == 0:
            self._tidy()

    def append_once(self, events: Sequence[dict[str, Any]], key: str) -> bool:
        """Append `events` in one commit, unless something was appended under `key` before; says whether they were.

        Of several writers at the same time one wins: the commit carries `key` as Delta's application id. Nothing is
        written for none.
        """
        if not events:
            return False
        with ledger_lease(self._path):
            return self._append_once(events, key)

    def compact(self, table: str) -> None:
        """Put the many small files about `table` together, and delete those that were replaced long enough ago.

        Events stay as they are, but those that are older than the table keeps them.

        Raises:
            CommitFailedError: somebody else has put them together at the same time; nothing was changed.
        """
        with ledger_lease(self._path):
            small = [file for file in self._files(table) if file.size < _FILE_BYTES]
            if len(small) >= FILES_WORTH_COMPACTING:
                delta = open_table(self._path)
                self._rewrite(delta, table, small)
                self._forget(delta, table)
                hours = int(_KEEP_REPLACED.total_seconds()) // 3600
                delta.vacuum(retention_hours=hours, dry_run=False, enforce_retention_duration=False)

    def _rewrite(self, delta: DeltaTable, table: str, small: Sequence[EventFile]) -> None:
        """Write the events since the oldest of the small files anew, as one file, in place of those that hold them.

        Not by delta-rs's OPTIMIZE, two of which at once double what they put together: it looks for no conflict. This
        is a write that replaces, of which one fails.
        """
        since = datetime.fromisoformat(min(file.least["recorded_at"] for file in small)).replace(microsecond=0)
        begin = max(since, datetime.now(UTC) - self._keep) if self._keep else since
        about = f'"table" = {texts([table])} AND recorded_at >= {moment(begin)}'
        columns = identifiers(self._schema.names)
        kept = query_columns(delta, f"SELECT {columns} FROM stored WHERE {about} ORDER BY recorded_at")
        write_deltalake(
            delta,
            kept.cast(self._schema),
            mode="overwrite",
            predicate=f"\"table\" = '{table}' AND recorded_at >= '{since:%Y-%m-%dT%H:%M:%S}Z'",
            writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=_EVENTS_A_GROUP),
        )

    def _forget(self, delta: DeltaTable, table: str) -> None:
        """Delete the events that are older than the table keeps them, once they fill whole files."""
        if self._keep is None:
            return
        limit = datetime.now(UTC) - self._keep
        if any(datetime.fromisoformat(file.greatest["recorded_at"]) < limit for file in self._files(table)):
            delta.delete(f"\"table\" = '{table}' AND recorded_at < '{limit:%Y-%m-%dT%H:%M:%S}Z'")

    def _tidy(self) -> None:
        """Sum the log up, and put the files together of which there are many about one table."""
        try:
            delta = open_table(self._path)
            delta.create_checkpoint()
            delta.cleanup_metadata()
            for table, count in Counter(file.table for file in self._log.files()).items():
                if count >= FILES_WORTH_COMPACTING:
                    self.compact(table)
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

    def events(self, table: str, columns: Sequence[str] = (), **equals: str) -> list[dict[str, Any]]:
        """The events about `table` whose columns equal `equals`, oldest first; kept, so there should be few.

        Args:
            table: the table that the events are about.
            columns: the columns to give, all for none.
            equals: column -> the value that it must have.
        """
        question = self._rows(columns, {column: [value] for column, value in equals.items()})
        return self._oldest_first(self.answers(table, question).values(), columns)

    def find(self, table: str, columns: Sequence[str] = (), **among: Collection[str]) -> list[dict[str, Any]]:
        """As `events`, of what is not asked again: nothing of it is kept.

        Args:
            table: the table that the events are about.
            columns: the columns to give, all for none.
            among: column -> the values of which it must have one; data files that lack the event or the token are not
                read.
        """
        question, files = self._rows(columns, among), [file.path for file in self._files(table)]
        held = [(self._answers_of(files, table, Values(column)), among[column]) for column in _PRUNING & among.keys()]
        wanted = [file for file in files if not any(found[file].isdisjoint(values) for found, values in held)]
        return self._oldest_first([self._ask(file, table, question) for file in wanted], columns)

    def since(
        self, table: str, column: str, least: int, columns: Sequence[str] = (), **among: Collection[str]
    ) -> list[dict[str, Any]]:
        """The events about `table` from some number on, oldest first; files that end below it are not read.

        Args:
            table: the table that the events are about.
            column: `version` or `batch_seq`.
            least: the least number.
            columns: the columns to give, all for none.
            among: column -> the values of which it must have one.
        """
        question = self._rows((*columns, column) if columns else (), among)
        reaching = [file.path for file in self._files(table) if file.greatest.get(column, least) >= least]
        found = [self._ask(file, table, question) for file in reaching]
        return [row for row in self._oldest_first(found, columns and (*columns, column)) if (row[column] or 0) >= least]

    def answers(self, table: str, question: Question[Answer]) -> dict[LakePath, Answer]:
        """data file about `table` -> what it says; a file is read once for a question."""
        return self._answers_of([file.path for file in self._files(table)], table, question)

    @_when_another_writer_won
    def _append_once(self, events: Sequence[dict[str, Any]], key: str) -> bool:
        self._create()
        delta = open_table(self._path)
        if delta.transaction_version(key) is not None:
            return False
        write_deltalake(
            delta,
            pa.Table.from_pylist(list(events), schema=self._schema),
            mode="append",
            commit_properties=CommitProperties(app_transactions=[Transaction(key, 1)]),
        )
        return True

    def _files(self, table: str) -> list[EventFile]:
        return [file for file in self._log.files() if file.table == table]

    def _answers_of(self, files: Sequence[LakePath], table: str, question: Question[Answer]) -> dict[LakePath, Answer]:
        known = self._answers.get((table, question), {})
        now = {file: known[file] if file in known else self._ask(file, table, question) for file in files}
        self._answers[table, question] = now
        return now

    def _ask(self, file: LakePath, table: str, question: Question[Answer]) -> Answer:
        wanted = pa.schema([field for field in self._schema if field.name in question.columns])
        return question.answer(read_events(file, wanted, table))

    def _configuration(self) -> dict[str, str | None]:
        return {**_CONFIGURATION, "delta.dataSkippingStatsColumns": ",".join(self._ordered)}

    def _rows(self, columns: Sequence[str], among: Mapping[str, Iterable[str]]) -> Rows:
        wanted = [field for field in self._schema if not columns or field.name in (*columns, "recorded_at")]
        return Rows(pa.schema(wanted), tuple((column, frozenset(values)) for column, values in among.items()))

    def _oldest_first(self, found: Iterable[pa.Table], columns: Sequence[str]) -> list[dict[str, Any]]:
        tables = list(found)
        if not tables:
            return []
        rows: list[dict[str, Any]] = (
            pa.concat_tables(tables).sort_by("recorded_at").select(columns or self._schema.names).to_pylist()
        )
        return rows

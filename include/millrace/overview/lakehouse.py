"""Read the tables of a lakehouse, for a process that shows them again and again.

Only those overviews are made anew about whose tables something changed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from queue import Empty, LifoQueue
from threading import Lock
from typing import NamedTuple

from millrace.catalog import Catalog, load_catalog
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.ledger.new_columns import OPEN
from millrace.control.ledger.ops_table import OpsSize
from millrace.control.ledger.states.recent_batches import MOST_BATCHES
from millrace.control.ledger.states.table_state import AllStates, TableState
from millrace.control.maintenance.health import StorageState
from millrace.control.maintenance.health_days import HealthDays
from millrace.control.maintenance.holding import lost_holds
from millrace.control.maintenance.retention import CERTIFIED_READERS, Reader
from millrace.control.ops_tables import OpsTables
from millrace.control.repair.interrupted import interrupted
from millrace.control.storage.read_cache import cached_reads
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.overview_from_state import holds_at, overview_of
from millrace.overview.tables.table_overview import Questions, TableOverview
from millrace.paths import LakehousePaths
from millrace.specs.invalid_spec import InvalidSpec
from millrace.specs.table_graph import TableGraph

FailedTasks = Callable[[Collection[str]], Mapping[str, Sequence[FailedTask]]]
"""Returns table -> the tasks that have failed lately, the newest first, for some tables."""


def no_failed_tasks(_tables: Collection[str]) -> Mapping[str, Sequence[FailedTask]]:
    """Return no task, for a process that cannot read Airflow's database; a `FailedTasks`."""
    return {}


_NO_STATE = TableState({})


class LakehouseReader:
    """Reads specs, states and the ledger; it keeps what it has read, and reads only what changed since.

    Several threads may use it.
    """

    def __init__(self, paths: LakehousePaths, specs: Path) -> None:
        self._paths = paths
        self._catalog = KnownCatalog(specs)
        self._states = AllStates(paths)
        self._overviews = KnownOverviews()
        self._lock = Lock()
        self._ops = LifoQueue[OpsTables]()

    def catalog(self) -> Catalog:
        """Return the specs as they are now.

        Raises:
            SpecError: there is no folder of specs.
        """
        with self._lock:
            return self._catalog.read()

    @contextmanager
    def ledger(self) -> Iterator[OpsTables]:
        """Lend the ledger to one thread for one page, with the parts of its log that an earlier page has read."""
        try:
            ops = self._ops.get_nowait()
        except Empty:
            ops = OpsTables(self._paths)
        with cached_reads():
            yield ops
        self._ops.put(ops)

    def read(self, now: datetime, failed: FailedTasks) -> list[TableOverview]:
        """Return every table that has a spec, in build order.

        Args:
            now: the time.
            failed: returns the tasks that have failed lately, for the tables of the lakehouse.

        Raises:
            SpecError: there is no folder of specs.
            MillraceError: the storage cannot be read.
        """
        with self._lock:
            catalog, states = self._catalog.read(), self._states.read()
        with self.ledger() as ops:
            asked = ops.deletes.tables() | ops.new_columns.tables() | ops.repairs.tables()
            asked |= {table for table, state in states.items() if _storage_needs_person(state)}
            questions = {table: _questions(table, states.get(table, _NO_STATE), ops) for table in asked}
        tables = _tables(catalog)
        failures = failed(tables)
        facts = {
            table: OverviewInput(
                catalog.invalid.get(table) or catalog.specs[table],
                states.get(table, _NO_STATE),
                questions.get(table, Questions()),
                failures.get(table, ()),
            )
            for table in tables
        }
        return self._overviews.read(facts, now)

    def ledger_sizes(self) -> dict[str, OpsSize]:
        """Return the size of each table of the ledger that exists: name -> size."""
        with self.ledger() as ops:
            return ops.sizes()

    def read_table(self, table: str, now: datetime, failed: FailedTasks) -> TableOverview | None:
        """Return one table; None if it has no spec. Raises the same errors as `read`."""
        catalog = self.catalog()
        spec = catalog.invalid.get(table) or catalog.specs.get(table)
        if spec is None:
            return None
        state = self._states.read_one(table)
        with self.ledger() as ops:
            questions = _questions(table, state, ops)
        failures = failed([table]).get(table, ())
        overview = overview_of(spec, state, questions, failures, now)
        readers = [
            each for each in (*catalog.specs.values(), *catalog.invalid.values()) if table in each.upstream_tables
        ]
        return with_readers(
            overview, (overview_of(each, self._states.read_one(each.table), Questions(), (), now) for each in readers)
        )


def _questions(table: str, state: TableState, ops: OpsTables) -> Questions:
    return Questions(
        ops.deletes.pending_deletes(table),
        ops.new_columns.of(table, *OPEN),
        interrupted([table], ops),
        has_lost_hold=_storage_needs_person(state) and bool(lost_holds([table], ops)),
    )


def _storage_needs_person(state: TableState) -> bool:
    """Return whether maintenance has last found something that only a person can mend, for which a log is opened."""
    days = state.part(HealthDays)
    return bool(days and days.newest and days.newest.storage is StorageState.NEEDS_PERSON)


def _tables(catalog: Catalog) -> list[str]:
    """Return every table, also one whose file is in no table's place."""
    return [*catalog.tables, *(table for table in catalog.invalid if table not in catalog.tables)]


class KnownCatalog:
    """Reads the specs of a folder; a thousand of them take seconds, but only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, tuple[int, int]] | None = None
        self._catalog = Catalog({})

    def read(self) -> Catalog:
        """Return the catalog of the files as they are now.

        Raises:
            SpecError: there is no such folder.
        """
        files = _stamps(self._folder)
        if files != self._files:
            self._catalog, self._files = load_catalog(self._folder), files
        return self._catalog


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return path -> (modification time, size) of every file in the folder that can be opened."""
    stamps = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            # A file may be gone by now, and the lock of an editor is a link to nothing.
            with suppress(FileNotFoundError):
                stat = os.stat(path)
                stamps[path] = (stat.st_mtime_ns, stat.st_size)
    return stamps


class OverviewInput(NamedTuple):
    """What an overview is made from; its attributes are those of `overview_of`."""

    spec: AnySpec | InvalidSpec
    state: TableState
    questions: Questions
    failed: Sequence[FailedTask]


class _Known(NamedTuple):
    """What was read last: table -> the facts, table -> its overview, and the overviews with the readers of each."""

    facts: Mapping[str, OverviewInput] = {}
    overviews: Mapping[str, TableOverview] = {}
    with_readers: Sequence[TableOverview] = ()


class KnownOverviews:
    """Keeps the overviews of the last reading. Several threads may use it."""

    def __init__(self) -> None:
        self._known = _Known()

    def read(self, facts: Mapping[str, OverviewInput], now: datetime) -> list[TableOverview]:
        """Return the overview of each table at a time, in the order of the facts, each with its readers."""
        known = self._known
        overviews = {table: _overview(known, table, of_table, now) for table, of_table in facts.items()}
        if [*map(id, overviews.values())] != [*map(id, known.overviews.values())]:
            known = self._known = _Known(facts, overviews, with_all_readers(overviews.values()))
        return list(known.with_readers)


def _overview(known: _Known, table: str, facts: OverviewInput, now: datetime) -> TableOverview:
    overview = known.overviews.get(table)
    if overview and known.facts[table] == facts and holds_at(overview, now):
        return overview
    return overview_of(*facts, now)


def with_all_readers(tables: Iterable[TableOverview]) -> list[TableOverview]:
    """Return the tables of a whole lakehouse, each with its readers."""
    every = {table.table: table for table in tables}
    readers = TableGraph.of(table.spec for table in every.values()).readers
    return [with_readers(table, map(every.__getitem__, readers.get(name, ()))) for name, table in every.items()]


def with_readers(table: TableOverview, downstream: Iterable[TableOverview]) -> TableOverview:
    """Return a table with the readers of its certified version, and the tables that read it."""
    readers = []
    if table.certified is not None:
        readers.append(Reader(CERTIFIED_READERS, table.certified, _since(table, table.certified)))
    for other in downstream:
        end = other.streams.newest if other.streams else None
        if other.streams is None or end is None:
            continue
        needed = other.streams.sources.needed_version(table.table, table.table_id, is_closed=end.rows is not None)
        if needed is not None:
            readers.append(Reader(other.table, needed, _since(table, needed, other.last.at if other.last else None)))
    return replace(table, readers=tuple(readers))


def _since(table: TableOverview, version: int, read_at: datetime | None = None) -> datetime | None:
    """Return when a batch made a version an old one; None if no batch did.

    The state has only the newest batches. If all of them are newer than the version, the time of the first one is too
    late, and `read_at`, when the reader read the version, is nearer.
    """
    newer = [batch.at for batch in table.batches if batch.version > version]
    if len(newer) == MOST_BATCHES and read_at:
        newer.append(read_at)
    return min(newer, default=None)

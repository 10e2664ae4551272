"""Which full snapshots of its source a silver table takes in: only those of which every file is loaded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from include.catalog import Catalog
from include.contracts.interval import Interval
from include.contracts.spec.table_spec import BronzeSpec, SilverSpec
from include.contracts.time_format import MINUTE
from include.control.landing.landing import files_by_the_thousand, landing_of
from include.control.landing.matching import known_by_content, match, read_through
from include.control.ledger.deletes import are_allowed, ways_to_allow
from include.control.ledger.events import Failure
from include.control.ledger.measures import table_rows
from include.control.ledger.resolution import table_id
from include.control.log.batch import BatchSources, Intent, Winner
from include.control.log.delta_log import latest_version
from include.control.ops_tables import OpsTables
from include.errors import DeletesRefusedError, NotDeliveredError, NotReadyError

_MOST_NAMED = 3


@dataclass(frozen=True)
class Wait:
    """Why the snapshot of an interval does not count yet.

    Attributes:
        reason: what it waits for, or what speaks against it.
        rows: how many rows would go, since its files hold no record; a person may let that happen.
        source_version: the version of its source that says so.
    """

    reason: str
    rows: int = 0
    source_version: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether the files of the snapshot hold no record."""
        return self.rows > 0


@dataclass(frozen=True)
class SnapshotPlan:
    """What a batch takes in.

    Attributes:
        sources: what it reads; None where nothing new counts.
        waits: start of an interval -> why its snapshot does not count yet.
        held_up: the intervals whose snapshots are whole, and are not taken in for one that waits.
    """

    sources: BatchSources | None
    waits: Mapping[datetime, Wait] = field(default_factory=dict)
    held_up: Collection[datetime] = ()

    def asks_for(self, interval: Interval) -> bool:
        """Whether the interval's snapshot holds no record, so that a person has to say whether that is right."""
        return interval.start in self.waits and self.waits[interval.start].is_empty

    def notes(self, table: str) -> tuple[str, ...]:
        """A line an interval whose snapshot does not count yet."""
        return tuple(waiting_line(table, start, wait) for start, wait in sorted(self.waits.items()))


def waiting_line(table: str, start: datetime, wait: Wait) -> str:
    """What a person must know of a snapshot that does not count yet."""
    cause = f"{table}: the full snapshot from {start:{MINUTE}} does not count yet"
    return f"{cause}\n{wait.reason}\nThe table stays as it is."


def require_whole(table: str, plan: SnapshotPlan, interval: Interval) -> None:
    """Require that the snapshot of a run's own interval counts.

    Raises:
        NotReadyError: it does not yet, or an earlier one holds it up.
        DeletesRefusedError: it holds no record.
    """
    start = min(plan.waits) if interval.start in plan.held_up else interval.start
    if wait := plan.waits.get(start):
        kind = DeletesRefusedError if wait.is_empty and start == interval.start else NotReadyError
        raise kind(waiting_line(table, start, wait))


def full_snapshots(
    catalog: Catalog, spec: SilverSpec, landing: str, ops: OpsTables, allowed: datetime | None = None
) -> FullSnapshots:
    """The full snapshots of a silver table of the catalog; the one from `allowed` may delete whatever it lacks."""
    bronze: BronzeSpec = catalog.spec(spec.source)  # type: ignore[assignment]
    return FullSnapshots(spec, bronze, landing, ops, allowed)


@dataclass(frozen=True)
class FullSnapshots:
    """The full snapshots that the source of a silver table holds.

    Attributes:
        spec: the silver table.
        bronze: its source.
        landing: the landing root.
        ops: the ledger's tables.
        allowed: start of the interval that a person lets delete whatever it lacks; None for none.
    """

    spec: SilverSpec
    bronze: BronzeSpec
    landing: str
    ops: OpsTables
    allowed: datetime | None = None

    def plan(self, sources: BatchSources, last: BatchSources) -> SnapshotPlan:
        """What a batch takes in.

        Args:
            sources: the pinned sources of the batch.
            last: those of the batch before it.
        """
        after, upto = sources.ranges[self.spec.source]
        source, ledger = self.spec.source, self.ops.ledger
        since = ledger.batches(source, sources.source_ids[source], -1 if after is None else after, upto)
        new = [winner.intent for winner in since]
        arrived = {intent.interval_start for intent in new if not intent.sources.replay}
        # What an earlier source held is no snapshot of the one that was built anew.
        known, before = (None, set[datetime]()) if after is None else (last.snapshot_at, set(last.waiting))
        waits = self._waits(sorted(arrived | before), sources)
        newest = max([*(arrived | before) - waits.keys(), *([known] if known else [])], default=None)
        if not self.spec.keeps_history:  # what is older than the newest one does not count anyway
            waits = {start: wait for start, wait in waits.items() if newest is None or start >= newest}
        taken = (arrived | before) - waits.keys()
        is_plain = not (sources.reprocess or any(intent.sources.replay for intent in new))
        if newest is None or (is_plain and not taken):
            return SnapshotPlan(None, waits)
        if self._is_held_up(waits.keys() & arrived, sources, last):
            return SnapshotPlan(None, waits, held_up=taken)
        on_top = is_plain and self.spec.keeps_history and known is not None and min(taken) > known
        stated = {
            "snapshot_at": newest,
            "snapshots": tuple(sorted(taken)) if on_top else (),
            "waiting": tuple(sorted(waits)),
            "released": tuple(sorted(before - waits.keys())),
        }
        return SnapshotPlan(sources.model_copy(update=stated), waits)

    def _is_held_up(self, waiting: set[datetime], sources: BatchSources, last: BatchSources) -> bool:
        """Whether a snapshot that the table holds has got further rows, but not all of them yet."""
        after, _ = sources.ranges[self.spec.source]
        if after is None or not waiting:
            return False
        if not self.spec.keeps_history:
            return last.snapshot_at in waiting
        source = self.spec.source
        batches = self.ops.ledger.batches_of(source, sources.source_ids[source], waiting - set(last.waiting))
        return any(batch.version <= after for batch in batches)

    def _waits(self, starts: Sequence[datetime], sources: BatchSources) -> dict[datetime, Wait]:
        """Start of an interval -> why its snapshot does not count, of those that do not."""
        source, ledger = self.spec.source, self.ops.ledger
        of_source = source, sources.source_ids[source]
        failures = ledger.unloaded(*of_source, interval_start=starts) if starts else {}
        batches = defaultdict[datetime, list[Winner]](list)
        for winner in ledger.batches_of(*of_source, starts):
            batches[winner.intent.interval_start].append(winner)
        upto = sources.ranges[source][1]
        read = [winner for of_interval in batches.values() for winner in of_interval if winner.version <= upto]
        records, rows = ledger.records_in(source, read) if read else Counter[datetime](), self._rows()
        waits: dict[datetime, Wait] = {}
        for start in starts:
            if wait := self._missing_files(start, batches[start], upto, failures):
                waits[start] = wait
            elif rows and not records[start] and not self._is_allowed(start, rows, sources, batches[start]):
                empty = f"Its files hold no record, so that all {rows:,} rows would be deleted."
                waits[start] = Wait(f"{empty}\n{ways_to_allow(self.spec.table, start, upto)}", rows, upto)
        return waits

    def _missing_files(
        self, start: datetime, batches: Sequence[Winner], upto: int, failures: Mapping[str, Failure]
    ) -> Wait | None:
        """What is missing of an interval, as its source stands at version `upto`."""
        source = self.spec.source
        missing = [one for one in failures.values() if one.interval_start == start and not one.given_up]
        if missing:
            return Wait(_missing(source, missing))
        read = [batch for batch in batches if batch.version <= upto]
        if not read or not read[-1].intent.sources.more_files:
            return None
        left = self._left(read[-1].intent) if read == batches else ["files of later batches"]
        return Wait(_named(f"Run {source} for that interval: it has not loaded", left)) if left else None

    def _is_allowed(self, start: datetime, rows: int, sources: BatchSources, batches: Sequence[Winner]) -> bool:
        """Whether a person has allowed that the snapshot deletes all rows, and no file of it came since."""
        table, source_id = self.spec.table, sources.source_ids[self.spec.source]
        if start == self.allowed:
            return True
        known = self.ops.deletes.allowed(table, table_id(self.ops.paths.table(table)), source_id)
        upto = sources.ranges[self.spec.source][1]
        since = max((batch.version for batch in batches if batch.version <= upto), default=0)
        return are_allowed(known, rows, since, upto, start)

    def _left(self, intent: Intent) -> list[str]:
        """The files of the interval that lie there and are not loaded."""
        interval = Interval(start=intent.interval_start, end=intent.interval_end)
        of_table, ledger = (self.bronze.table, intent.table_id), self.ops.ledger
        loaded = ledger.loaded_files(*of_table)
        landing = landing_of(self.bronze.landing_source.landing, self.landing)
        source = self.bronze.landing_source
        try:
            listed = match(files_by_the_thousand(self.bronze, landing, interval), loaded)
        except NotDeliveredError:
            if landing.files(source.landing, lambda _: True) is None:
                raise  # the whole feed is gone, as where a share is not mounted
            return []  # only the interval's folder is: nothing is left in it
        failed = ledger.unloaded(*of_table, path=[file.path for file in listed.unread])
        given_up = {path: one.file for path, one in failed.items() if one.given_up}
        found = known_by_content(listed, loaded, given_up, source, partial(read_through, landing, self.bronze))
        return [file.path for file in found.unread]

    def _rows(self) -> int:
        path = self.ops.paths.table(self.spec.table)
        newest = latest_version(path)
        return table_rows(path, newest) if newest >= 0 else 0


def _missing(source: str, failures: Iterable[Failure]) -> str:
    told = [f"{one.file.path} ({one.file.defect})" for one in failures]
    way_out = (
        f"Have it delivered again and run {source} for that interval; or go on without it: `lakehouse give-up FILE "
        "--reason ...`."
    )
    what = "A file of it cannot be loaded:" if len(told) == 1 else "Files of it cannot be loaded:"
    return _named(what, told, way_out)


def _named(what: str, names: list[str], way_out: str = "") -> str:
    more = f", and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return "\n".join(part for part in (f"{what} {', '.join(names[:_MOST_NAMED])}{more}".rstrip(), way_out) if part)

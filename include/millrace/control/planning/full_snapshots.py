"""The full snapshots that a silver table reads from its source: only those whose files are all loaded."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.contracts.time_format import MINUTE
from millrace.control.landing.landing import interval_files, landing_of
from millrace.control.landing.matching import IsEnough, compare_all, match_files, read_listed
from millrace.control.ledger.deletes import are_allowed, ways_to_allow
from millrace.control.ledger.events import Failure
from millrace.control.ledger.resolution import table_id
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import BatchSources, Intent, Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.ops_tables import OpsTables
from millrace.errors import DeletesRefusedError, NotDeliveredError, NotReadyError

_MAX_NAMES = 3


@dataclass(frozen=True)
class SnapshotDelay:
    """The reason why the snapshot of an interval does not count yet.

    Attributes:
        reason: what the snapshot waits for, and the way out.
        rows: for a snapshot without a record, the number of rows that it would delete; a person may allow that.
        source_version: for a snapshot without a record, the source version in which it has none.
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
    """The snapshots that a batch reads.

    Attributes:
        sources: the sources of the batch; None if no new snapshot counts.
        delays: start of an interval -> why its snapshot does not count yet.
        blocked: the intervals with a complete snapshot that has to wait for a delayed snapshot.
    """

    sources: BatchSources | None
    delays: Mapping[datetime, SnapshotDelay] = field(default_factory=dict)
    blocked: Collection[datetime] = ()


def delay_message(table: str, start: datetime, delay: SnapshotDelay) -> str:
    """Return the message about a snapshot that does not count yet."""
    cause = f"{table}: the full snapshot from {start:{MINUTE}} does not count yet"
    return f"{cause}\n{delay.reason}\nThe table stays as it is."


def delay_notes(table: str, delays: Mapping[datetime, SnapshotDelay]) -> tuple[str, ...]:
    """Return one note for each interval whose snapshot does not count yet."""
    return tuple(delay_message(table, start, delay) for start, delay in sorted(delays.items()))


def require_whole(table: str, plan: SnapshotPlan, interval: Interval) -> None:
    """Require that the snapshot of a run's own interval counts.

    Raises:
        NotReadyError: a file of it is missing, or an earlier snapshot blocks it.
        DeletesRefusedError: it holds no record.
    """
    start = min(plan.delays) if interval.start in plan.blocked else interval.start
    if delay := plan.delays.get(start):
        kind = DeletesRefusedError if delay.is_empty and start == interval.start else NotReadyError
        raise kind(delay_message(table, start, delay))


@dataclass(frozen=True)
class FullSnapshots:
    """The full snapshots in the source of a silver table.

    Attributes:
        catalog: the catalog with its source, which is sound.
        spec: the spec of the silver table.
        landing: the landing root.
        ops: the ledger's tables.
        allowed: the start of the interval whose snapshot may delete all keys that it lacks, as a person has allowed.
        is_enough: says when to stop comparing the files of a landing folder.
    """

    catalog: Catalog
    spec: SilverSpec
    landing: str
    ops: OpsTables
    allowed: datetime | None = None
    is_enough: IsEnough = compare_all

    def plan(self, sources: BatchSources, last: BatchSources) -> SnapshotPlan:
        """Return the snapshots that a batch with the pinned `sources` reads; `last` has those of the batch before."""
        after, upto = sources.ranges[self.spec.only_source]
        source, ledger = self.spec.only_source, self.ops.ledger
        since = ledger.batches(source, sources.source_ids[source], -1 if after is None else after, upto)
        new = [winner.intent for winner in since]
        new_starts = {intent.interval_start for intent in new if not intent.sources.replay}
        # After a rebuild of the source, the snapshots of the earlier table do not count.
        newest_read, open_starts = (None, set[datetime]()) if after is None else (last.snapshot_at, set(last.waiting))
        delays = self._delays(sorted(new_starts | open_starts), sources)
        newest = max(
            [*(new_starts | open_starts) - delays.keys(), *([newest_read] if newest_read else [])], default=None
        )
        if not self.spec.keeps_history:  # a snapshot before the newest is never read
            delays = {start: delay for start, delay in delays.items() if newest is None or start >= newest}
        complete = (new_starts | open_starts) - delays.keys()
        is_plain = not (sources.reprocess or any(intent.sources.replay for intent in new))
        if newest is None or (is_plain and not complete):
            return SnapshotPlan(None, delays)
        if self._is_blocked(delays.keys() & new_starts, sources, last):
            return SnapshotPlan(None, delays, blocked=complete)
        on_top = is_plain and self.spec.keeps_history and newest_read is not None and min(complete) > newest_read
        update = {
            "snapshot_at": newest,
            "snapshots": tuple(sorted(complete)) if on_top else (),
            "waiting": tuple(sorted(delays)),
            "released": tuple(sorted(open_starts - delays.keys())),
        }
        return SnapshotPlan(sources.model_copy(update=update), delays)

    def _is_blocked(self, waiting: set[datetime], sources: BatchSources, last: BatchSources) -> bool:
        """Whether a snapshot that the table has read has some new rows, but not all of them yet."""
        after, _ = sources.ranges[self.spec.only_source]
        if after is None or not waiting:
            return False
        if not self.spec.keeps_history:
            return last.snapshot_at in waiting
        source = self.spec.only_source
        batches = self.ops.ledger.batches_of(source, sources.source_ids[source], waiting - set(last.waiting))
        return any(batch.version <= after for batch in batches)

    def _delays(self, starts: Sequence[datetime], sources: BatchSources) -> dict[datetime, SnapshotDelay]:
        """Return the snapshots that do not count: start of the interval -> the reason."""
        source, ledger = self.spec.only_source, self.ops.ledger
        of_source = source, sources.source_ids[source]
        failures = ledger.failed_files(*of_source, interval_start=starts) if starts else {}
        batches = defaultdict[datetime, list[Winner]](list)
        for winner in ledger.batches_of(*of_source, starts):
            batches[winner.intent.interval_start].append(winner)
        upto = sources.ranges[source][1]
        read = [winner for of_interval in batches.values() for winner in of_interval if winner.version <= upto]
        records = ledger.records_in(source, read) if read else Counter[datetime]()
        path = self.ops.paths.table(self.spec.table)
        newest = latest_version(path)
        rows = table_rows(path, newest) if newest >= 0 else 0
        delays: dict[datetime, SnapshotDelay] = {}
        for start in starts:
            if delay := self._missing_files(start, batches[start], upto, failures):
                delays[start] = delay
            elif rows and not records[start] and not self._is_allowed(start, rows, sources, batches[start]):
                empty = f"Its files hold no record, so that {counted(rows, 'row')} would be deleted."
                delays[start] = SnapshotDelay(f"{empty}\n{ways_to_allow(self.spec.table, start, upto)}", rows, upto)
        return delays

    def _missing_files(
        self, start: datetime, batches: Sequence[Winner], upto: int, failures: Mapping[str, Failure]
    ) -> SnapshotDelay | None:
        """Return the delay of an interval with files that version `upto` of the source lacks; None if it has all."""
        source = self.spec.only_source
        failed = [each.file for each in failures.values() if each.interval_start == start and not each.given_up]
        if failed:
            cause = "A file of it cannot be loaded:" if len(failed) == 1 else "Files of it cannot be loaded:"
            names = _first_names([f"{file.path} ({file.defect})" for file in failed])
            way_out = "or go on without it: `lakehouse give-up FILE --reason ...`."
            redelivery = f"Have it delivered again and run {source} for that interval"
            return SnapshotDelay(f"{cause} {names}\n{redelivery}; {way_out}")
        read = [batch for batch in batches if batch.version <= upto]
        if not read or not read[-1].intent.sources.more_files:
            return None
        left = _first_names(self._unread_files(read[-1].intent)) if read == batches else "files of later batches"
        return SnapshotDelay(f"Run {source} for that interval: it has not loaded {left}") if left else None

    def _is_allowed(self, start: datetime, rows: int, sources: BatchSources, batches: Sequence[Winner]) -> bool:
        """Whether a person has allowed that the snapshot deletes all rows, and no file of it was loaded since."""
        table, source_id = self.spec.table, sources.source_ids[self.spec.only_source]
        if start == self.allowed:
            return True
        allowed = self.ops.deletes.allowed_deletes(table, table_id(self.ops.paths.table(table)), source_id)
        upto = sources.ranges[self.spec.only_source][1]
        since = max((batch.version for batch in batches if batch.version <= upto), default=0)
        return are_allowed(allowed, rows, since, upto, start)

    def _unread_files(self, intent: Intent) -> list[str]:
        """Return the landing files of the interval that are not loaded."""
        bronze: BronzeSpec = self.catalog.spec(self.spec.only_source)  # type: ignore[assignment]
        source, interval = bronze.landing_source, intent.interval
        landing, ledger = landing_of(source.landing, self.landing), self.ops.ledger

        def given_up_by_person(paths: Collection[str]) -> dict[str, Failure]:
            failures = ledger.failures(bronze.table, intent.table_id, path=paths)
            return {path: failure for path, failure in failures.items() if failure.given_up}

        try:
            files = interval_files(bronze, landing, interval)
        except NotDeliveredError:
            if landing.files(source.landing, lambda _: True) is None:
                raise  # the folder of the whole feed is missing, for example because a share is not mounted
            return []  # only the folder of the interval is missing
        loaded, read_file = ledger.loaded_files(bronze.table, intent.table_id), partial(read_listed, landing, bronze)
        matches = match_files(files, loaded, given_up_by_person, source, read_file, self.is_enough)
        more = [f"files after the first {matches.count:,}, as far as is known"] if matches.is_partial else []
        return [*(file.path for file in matches.unread), *more]


def _first_names(names: list[str]) -> str:
    more = f", and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return f"{', '.join(names[:_MAX_NAMES])}{more}"

"""The planner: it tells the worker and the CLI what a run would do.

It takes no lease and starts no Spark. The driver makes its own plan under the lease.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial

from millrace.catalog import Catalog
from millrace.clock import Clock, utc_now
from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from millrace.control.changes.table_diff import TableDiff, diff_for_run
from millrace.control.gates.overrides import override_note
from millrace.control.gates.verification import verification_note
from millrace.control.landing.deliveries import Folders, delivered_files
from millrace.control.landing.landing import Landing, interval_files, is_as_listed, landing_of
from millrace.control.landing.matching import (
    IsEnough,
    MatchedFiles,
    compare_all,
    match_files,
    read_listed,
    split_by_age,
)
from millrace.control.ledger.deletes import are_too_many, refusal_message
from millrace.control.ledger.events import FileEvent
from millrace.control.log.batch import BatchSources, FileFact, StreamPosition
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.advice import Advice, with_files, with_messages
from millrace.control.planning.complete_batches import is_complete
from millrace.control.planning.full_snapshots import FullSnapshots, delay_message, delay_notes, require_whole
from millrace.control.planning.refresh_cost import cost_before_tracing
from millrace.control.planning.source_ranges import changed_ranges, pin_sources, ranges_message, why_whole
from millrace.control.planning.stream_positions import stream_position, stream_positions
from millrace.control.quarantine.ageing import ageing_note
from millrace.control.quarantine.waits import rows_to_try, tried_in_words, wait_note
from millrace.settings import Settings
from millrace.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec
from millrace.specs.problem import SpecsRefusedError


@dataclass(frozen=True)
class Standing:
    """The state of a stream of a table, without regard to its sources; it stays the same until a batch changes it.

    Attributes:
        position: the position of the stream; None if there is no table yet.
        advice: the advice that follows from the table alone.
    """

    position: StreamPosition | None
    advice: Advice


class Planner:
    """The planner of one lakehouse.

    Args:
        catalog: the specs.
        settings: the places of the lakehouse.
        clock: returns the time of the plan.
        ops: the ledger; by default it is opened.
        is_enough: says when to stop comparing the files of a landing folder; by default all are compared.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        clock: Clock = utc_now,
        ops: OpsTables | None = None,
        is_enough: IsEnough = compare_all,
    ) -> None:
        self._catalog = catalog
        self._settings = settings
        self._clock = clock
        self._is_enough = is_enough
        self.ops = ops or OpsTables(settings.paths, keep_commits=settings.keep_commits)
        self._diffs: dict[str, TableDiff] = {}

    def standing(self, spec: MaybeInvalidSpec, interval: Interval | None = None) -> Standing:
        """Return the state of the stream that loads the interval; by default, of the stream with the newest batch.

        Raises:
            SpecsRefusedError: the spec is wrong.
            TornLogError: a log does not continue where it was last resolved.
        """
        valid = _require_valid(spec)
        start = interval.start if interval else None
        position = stream_position(valid, self.ops.paths, self.ops.ledger, start)
        return Standing(position, self._state(valid, position))

    def due_intervals(self, spec: BronzeSpec, folders: Folders) -> tuple[tuple[Interval, ...], int]:
        """Return the intervals for which a run has work, oldest first, and the number of files that are too young.

        A run has work if it would load a file or complete a batch. A job that follows a source calls this repeatedly:
        it therefore records files that only have another time, so that the next call does not read them.

        Raises:
            NotDeliveredError: the folder of the feed does not exist.
            TornLogError: a log does not continue where it was last resolved.
        """
        ops, landing = self.ops, landing_of(spec.landing_source.landing, self._settings.landing)
        positions = stream_positions(spec, ops.paths, ops.ledger)
        table_id = positions[0].table_id if positions else ""
        matches = self._match(spec, table_id, landing, delivered_files(spec, landing, folders))
        young, settled = split_by_age(matches.unread, spec.landing_source)
        due = {interval for file in settled if (interval := folders.interval(file.path))}
        for event, unchanged in ((FileEvent.SEEN, matches.seen), (FileEvent.TOUCHED, matches.touched)):
            of_interval = defaultdict[Interval, list[FileFact]](list)
            for file in unchanged:
                if (interval := folders.interval(file.path)) and is_as_listed(file, landing):
                    of_interval[interval].append(file)
            for interval, files in of_interval.items():
                ops.ledger.record_files(event, spec.table, table_id, interval, files)
        for last in filter(None, (position.last for position in positions)):
            if not is_complete(spec, last, ops):
                due.add(last.intent.interval)
        return tuple(sorted(due, key=lambda interval: interval.start)), len(young)

    def advise(
        self, spec: MaybeInvalidSpec, interval: Interval, *, reprocess: bool = False, standing: Standing | None = None
    ) -> Advice:
        """Return what a run of `spec` for `interval` would do now.

        Args:
            spec: the spec of the table.
            interval: the interval.
            reprocess: whether the interval's rows are read again.
            standing: the state of the interval's stream, for callers that plan several intervals; by default it is
                read.

        Raises:
            SpecError: the spec is wrong, or the spec of a table that it reads directly or indirectly.
            NotReadyError: the landing folder is missing, no Kafka broker answers, or a source has no certified version
                yet.
            BadInputError: the broker has deleted Kafka messages that no batch has read.
            TornLogError: a log does not continue where it was last resolved.
        """
        valid = _require_valid(spec)
        self._catalog.require_sound_sources(valid)
        known = standing or self.standing(valid, interval)
        position, state = known.position, known.advice
        if not isinstance(valid, BronzeSpec):
            return self._with_sources(state, valid, position, interval, reprocess=reprocess)
        if valid.reads_kafka:
            return with_messages(state, valid, position, self._settings, self._clock())
        landing = landing_of(valid.landing_source.landing, self._settings.landing)
        files = interval_files(valid, landing, interval)
        matches = self._match(valid, position.table_id if position else "", landing, files)
        return with_files(state, valid.landing_source, matches)

    def _match(self, spec: BronzeSpec, table_id: str, landing: Landing, files: Iterable[FileFact]) -> MatchedFiles:
        ledger = self.ops.ledger
        return match_files(
            files,
            ledger.loaded_files(spec.table, table_id),
            lambda paths: ledger.failures(spec.table, table_id, path=paths),
            spec.landing_source,
            partial(read_listed, landing, spec),
            self._is_enough,
        )

    def _with_sources(
        self,
        base: Advice,
        spec: SilverSpec | GoldSpec,
        position: StreamPosition | None,
        interval: Interval,
        *,
        reprocess: bool,
    ) -> Advice:
        """Add the source versions that a run of a silver or gold table would read."""
        ops = self.ops
        sources = pin_sources(spec, ops.paths, ops.gates, position)
        ranges = changed_ranges(spec, sources, ops.paths)
        last = position.last_sources if position else BatchSources()
        is_new, approval_needed = bool(ranges or reprocess or last.waiting), ""
        tried = rows_to_try(spec, position, sources.references, ops.paths, self._clock())
        if is_new and isinstance(spec, SilverSpec) and spec.snapshot:
            sources = sources.model_copy(update={"reprocess": reprocess})
            snapshots = FullSnapshots(self._catalog, spec, self._settings.landing, ops, is_enough=self._is_enough)
            plan = snapshots.plan(sources, last)
            delay = plan.delays.get(interval.start)
            if plan.sources is None and delay and delay.is_empty:
                approval_needed = delay_message(spec.table, interval.start, delay)
            elif plan.sources is None:
                require_whole(spec.table, plan, interval)
                is_new, ranges = False, {}
            base = replace(base, notes=(*base.notes, *delay_notes(spec.table, plan.delays)))
        if is_new and isinstance(spec, SilverSpec) and position and not approval_needed:
            for source, (_, upto) in sources.ranges.items():
                source_id = sources.source_ids[source]
                deletes = ops.deletes.pending_deletes_at(spec.table, position.table_id, source_id, upto)
                if deletes and are_too_many(deletes.keys, deletes.of_keys, spec.max_deleted_percent):
                    approval_needed = refusal_message(deletes, spec.max_deleted_percent)
        is_new = is_new or bool(tried)
        return replace(
            base,
            nothing_new=base.nothing_new and not is_new,
            has_new_data=base.has_new_data or (is_new and not approval_needed),
            approval_needed=approval_needed,
            message=ranges_message(spec, ranges, reprocess=reprocess)
            + tried_in_words(spec, tried)
            + self._refresh(spec, sources, ranges, position)
            + base.message,
            sources=ranges,
            notes=(*base.notes, *wait_note(spec, ops.paths, self._clock())),
        )

    def _refresh(
        self,
        spec: SilverSpec | GoldSpec,
        sources: BatchSources,
        ranges: dict[str, tuple[int | None, int]],
        position: StreamPosition | None,
    ) -> str:
        """Return why a run would compute a whole gold table, or what a refresh reads and how its values are traced."""
        if not isinstance(spec, GoldSpec) or not ranges:
            return ""
        paths = self.ops.paths
        if reason := why_whole(sources.ranges, paths):
            return f"; computes the whole table: {reason}"
        if position is None or any(after is None for after, _ in ranges.values()):
            return ""
        cost = cost_before_tracing(paths.table(spec.table), position.version, sources.ranges, paths)
        if cost.is_whole_cheaper:
            return f"; computes the whole table: {cost.in_words()}"
        words = "" if cost.is_small else f"; incremental, unless it costs more: {cost.in_words()}"
        if spec.refresh_from and not spec.lookback:
            return words
        from millrace.specs.checks.sql import refresh_in_words  # loads sqlglot, which takes half a second

        refresh = refresh_in_words(spec, self._catalog.specs)
        return f"; {refresh}{words}" if refresh else words

    def _state(self, spec: AnySpec, position: StreamPosition | None) -> Advice:
        """Return the advice that follows from the table alone, without its sources."""
        last, ops = position.last if position else None, self.ops
        unfinished = last is not None and not (is_complete(spec, last, ops) and self._streams_are_complete(spec))
        verdicts = ops.gates.verdicts(spec.table)
        certified = verdicts.certified if verdicts else None
        result = ops.gates.result_from(verdicts, spec.table, last.version, spec.suite_hash) if last else None
        # The difference is the same for every interval, until the table has another batch.
        key = f"{spec.table}/{last.token if last else ''}"
        if key not in self._diffs:
            self._diffs[key] = diff_for_run(spec, last, ops)
        diff = self._diffs[key]
        changed = "; the table is changed as its spec says" if diff.needs_run else ""
        is_unchecked = last is not None and result is None and ops.ledger.closed_rows(last) is not None
        left = "checked by its rules" if is_unchecked else "completed"
        return Advice(
            table=spec.table,
            nothing_new=last is not None and not (unfinished or diff.needs_run or diff.misfit),
            message=changed + (f"; the last batch is still to be {left}" if unfinished else ""),
            batch_seq=last.batch_seq if last else None,
            version=last.version if last else None,
            newest_version=position.version if position else None,
            certified_version=certified,
            has_new_data=last is not None and unfinished and (certified is None or certified < last.version),
            refused=result.refused if result and not result.passed else "",
            misfit=diff.misfit,
            notes=(
                *diff.lines(),
                *override_note(spec.table, verdicts),
                *verification_note(spec.table, verdicts),
                *ageing_note(spec, ops.paths, self._clock()),
            ),
        )

    def _streams_are_complete(self, spec: AnySpec) -> bool:
        """Whether every stream of a silver table is: its run writes them all; a run of bronze writes one."""
        if not isinstance(spec, SilverSpec) or not spec.concurrent_by:
            return True
        positions = stream_positions(spec, self.ops.paths, self.ops.ledger)
        return all(position.last is None or is_complete(spec, position.last, self.ops) for position in positions)


def _require_valid(spec: MaybeInvalidSpec) -> AnySpec:
    if isinstance(spec, InvalidSpec):
        raise SpecsRefusedError(spec.problems)
    return spec

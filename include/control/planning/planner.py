"""What a run would do: read-only advice for the worker and the CLI.

No lease is taken, nothing is written, no Spark is started. The driver makes its own plan under the lease.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from deltalake.exceptions import TableNotFoundError

from include.catalog import Catalog
from include.contracts.interval import Interval
from include.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from include.control.changes.table_diff import TableDiff, diff_for_run
from include.control.gates.overrides import override_note
from include.control.gates.restore import why_not
from include.control.gates.verdicts import Verdicts
from include.control.landing.deliveries import Folders, delivered
from include.control.landing.landing import files_by_the_thousand, is_as_listed, landing_of
from include.control.landing.matching import Matched, given_up, known_by_content, match, read_through, split_by_age
from include.control.ledger.deletes import are_too_many, refusal
from include.control.ledger.events import Failure
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import look
from include.control.log.batch import BatchSources, FileFact, Stream, StreamPosition, Winner
from include.control.ops_tables import OpsTables
from include.control.planning.advice import Advice, with_files, with_messages
from include.control.planning.full_snapshots import full_snapshots, require_whole, waiting_line
from include.control.planning.merge_size import bytes_of_batch
from include.control.planning.source_ranges import changed_ranges, pin_sources
from include.control.quarantine.ageing import ageing_note
from include.paths import LakehousePaths
from include.settings import Settings
from include.specs.invalid_spec import InvalidSpec, MaybeInvalidSpec
from include.specs.problem import SpecsRefusedError


class Planner:
    """The plans of one lakehouse; its ledger is opened once for all of them.

    Args:
        catalog: the tables.
        settings: where everything lies.

    Attributes:
        ops: the ledger's tables.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self.ops = OpsTables(LakehousePaths(settings.root))
        self._diffs: dict[str, TableDiff] = {}

    def standing(self, spec: MaybeInvalidSpec) -> Advice:
        """How the table of `spec` stands, whatever its sources hold.

        Raises:
            SpecsRefusedError: the spec is wrong.
            TornLogError: a log does not continue where it was last resolved.
        """
        sound = _sound(spec)
        return self._base(sound, stream_position(sound, self.ops.paths, self.ops.ledger))

    def due(self, spec: BronzeSpec, folders: Folders) -> tuple[tuple[Interval, ...], int]:
        """(the intervals of which a run would load a file, or finish a batch, oldest first; how many files are young).

        Who follows a source asks again and again: a file of which only the time has changed is written down, and is not
        read the next time.

        Raises:
            NotDeliveredError: the feed has no folder at all.
            TornLogError: a log does not continue where it was last resolved.
        """
        ops, source = self.ops, spec.landing_source
        position = stream_position(spec, ops.paths, ops.ledger)
        last, of_table = position.last if position else None, (spec.table, position.table_id if position else "")
        landing, loaded = landing_of(source.landing, self._settings.landing), ops.ledger.loaded_files(*of_table)
        listed = match(delivered(spec, landing, folders), loaded)
        hopeless = given_up(self._failures(*of_table, listed), source)
        found = known_by_content(listed, loaded, hopeless, source, partial(read_through, landing, spec))
        young, settled = split_by_age(found.unread, source)
        due = {interval for file in settled if (interval := folders.interval(file.path))}
        for record, known in ((ops.ledger.record_seen, found.seen), (ops.ledger.record_touched, found.touched)):
            of_interval = defaultdict[Interval, list[FileFact]](list)
            for file in known:
                if (interval := folders.interval(file.path)) and is_as_listed(file, landing):
                    of_interval[interval].append(file)
            for interval, files in of_interval.items():
                record(*of_table, interval, files)
        if last is not None and not is_complete(spec, last, ops):
            due.add(Interval(start=last.intent.interval_start, end=last.intent.interval_end))
        return tuple(sorted(due, key=lambda interval: interval.start)), len(young)

    def advise(self, spec: MaybeInvalidSpec, interval: Interval, *, reprocess: bool = False) -> Advice:
        """What a run of `spec` for `interval` would do now.

        Raises:
            SpecError: the spec is wrong, or that of a table which it reads, directly or through others.
            NotReadyError: the landing folder is missing, no Kafka broker answers, or a source has no certified version
                yet.
            BadInputError: Kafka messages are gone that were never read.
            TornLogError: a log does not continue where it was last resolved.
        """
        sound = _sound(spec)
        self._catalog.require_sound_sources(sound)
        return self._advise(sound, interval, reprocess=reprocess)

    def _advise(self, spec: AnySpec, interval: Interval, *, reprocess: bool) -> Advice:
        ops = self.ops
        position = stream_position(spec, ops.paths, ops.ledger)
        base = self._base(spec, position)
        if isinstance(spec, BronzeSpec) and spec.reads_kafka:
            return with_messages(base, spec, position, self._settings)
        if isinstance(spec, BronzeSpec):
            source, of_table = spec.landing_source, (spec.table, position.table_id if position else "")
            landing, loaded = landing_of(source.landing, self._settings.landing), ops.ledger.loaded_files(*of_table)
            listed = match(files_by_the_thousand(spec, landing, interval), loaded)
            failures = self._failures(*of_table, listed)
            hopeless = given_up(failures, source)
            found = known_by_content(listed, loaded, hopeless, source, partial(read_through, landing, spec))
            return with_files(base, source, found, failures)
        return self._below_bronze(base, spec, position, interval, reprocess=reprocess)

    def _failures(self, table: str, table_id: str, listed: Matched) -> dict[str, Failure]:
        """Which of the files that nobody has loaded could not be loaded before."""
        paths = [file.path for file in listed.unread]
        return self.ops.ledger.failures(table, table_id, path=paths) if paths else {}

    def _below_bronze(
        self,
        base: Advice,
        spec: SilverSpec | GoldSpec,
        position: StreamPosition | None,
        interval: Interval,
        *,
        reprocess: bool,
    ) -> Advice:
        ops = self.ops
        sources = pin_sources(spec, ops.paths, ops.gates, position)
        ranges = changed_ranges(spec, sources, ops.paths)
        last = position.last_sources if position else BatchSources()
        is_new, asks = bool(ranges or reprocess or last.waiting), ""
        if is_new and isinstance(spec, SilverSpec) and spec.snapshot:
            again = sources.model_copy(update={"reprocess": reprocess})
            found = full_snapshots(self._catalog, spec, self._settings.landing, ops).plan(again, last)
            if found.sources is None and found.asks_for(interval):
                asks = waiting_line(spec.table, interval.start, found.waits[interval.start])
            elif found.sources is None:
                require_whole(spec.table, found, interval)
                is_new, ranges = False, {}
            base = replace(base, notes=(*base.notes, *found.notes(spec.table)))
        if is_new and isinstance(spec, SilverSpec) and position and not asks:
            asks = _question(spec, position.table_id, sources, ops)
        return replace(
            base,
            nothing_new=base.nothing_new and not is_new,
            brings=base.brings or (is_new and not asks),
            asks=asks,
            message=_ranges_message(spec, ranges, reprocess=reprocess) + base.message,
            text_bytes=bytes_of_batch(spec.table, base.version, ranges, ops.paths) if ranges else 0,
            sources=ranges,
        )

    def _base(self, spec: AnySpec, position: StreamPosition | None) -> Advice:
        """What can be said before the sources were looked at."""
        last, ops = position.last if position else None, self.ops
        unfinished = last is not None and not is_complete(spec, last, ops)
        standing = ops.gates.standing(spec.table)
        certified = standing.certified if standing else None
        diff = self._diff(spec, last)
        changed = "; the table is changed as its spec says" if diff.wants_a_run else ""
        return Advice(
            table=spec.table,
            nothing_new=last is not None and not (unfinished or diff.wants_a_run or diff.misfit),
            message=changed + ("; the last batch is still to be finished or judged" if unfinished else ""),
            batch_seq=last.batch_seq if last else None,
            version=last.version if last else None,
            newest_version=position.version if position else None,
            certified_version=certified,
            brings=last is not None and unfinished and (certified is None or certified < last.version),
            refused=_standing_refusal(spec, last, standing, ops) if last else "",
            misfit=diff.misfit,
            notes=(
                *diff.lines(),
                *override_note(spec.table, standing),
                *ageing_note(spec, ops.paths, datetime.now(UTC)),
            ),
        )

    def _diff(self, spec: AnySpec, last: Winner | None) -> TableDiff:
        """The same for every interval, until the table has another batch."""
        key = f"{spec.table}/{last.token if last else ''}"
        if key not in self._diffs:
            self._diffs[key] = diff_for_run(spec, last, self.ops)
        return self._diffs[key]


def _sound(spec: MaybeInvalidSpec) -> AnySpec:
    if isinstance(spec, InvalidSpec):
        raise SpecsRefusedError(spec.problems)
    return spec


def stream_position(spec: MaybeInvalidSpec, paths: LakehousePaths, ledger: Ledger) -> StreamPosition | None:
    """Where the table's stream stands, read without writing; None when there is no table yet."""
    try:
        position, _ = look(paths.table(spec.table), Stream(spec.table), ledger)
    except TableNotFoundError:
        return None
    return position


def is_complete(spec: AnySpec, last: Winner, ops: OpsTables) -> bool:
    """Whether a batch has its secondary writes and its gate result, and was taken back if that is wanted."""
    if not ops.ledger.closed(last):
        return False
    if last.intent.sources.restores is not None:
        return True  # its rows have been judged, as another version
    result = ops.gates.result(spec.table, last.version, spec.suite_hash)
    if result is None or result.passed or spec.on_refusal == "keep":
        return result is not None
    return bool(why_not(result, ops.paths, ops.gates))


def _standing_refusal(spec: AnySpec, last: Winner, standing: Verdicts | None, ops: OpsTables) -> str:
    """Why the rules as they are have refused the last batch."""
    result = ops.gates.result_of(standing, spec.table, last.version, spec.suite_hash)
    return result.refused if result and not result.passed else ""


def _question(spec: SilverSpec, table_id: str, sources: BatchSources, ops: OpsTables) -> str:
    """The deletes that nobody has allowed since a run stopped before them; empty where a run would not stop again."""
    upto, source_id = sources.ranges[spec.source][1], sources.source_ids[spec.source]
    asked = ops.deletes.question(spec.table, table_id, source_id, upto)
    is_open = asked and are_too_many(asked.keys, asked.of_keys, spec.max_deleted_percent)
    return refusal(asked, spec.max_deleted_percent) if asked and is_open else ""


def _ranges_message(spec: SilverSpec | GoldSpec, ranges: dict[str, tuple[int | None, int]], *, reprocess: bool) -> str:
    if reprocess:
        return "reads the interval's rows again"
    if not ranges:
        return f"nothing new in {', '.join(spec.source_tables)}"
    return ", ".join(f"{table} versions {_after(after)} to {upto}" for table, (after, upto) in ranges.items())


def _after(after: int | None) -> int:
    return 0 if after is None else after + 1

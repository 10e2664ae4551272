"""What a run would do: read-only advice for the worker and the CLI.

No lease is taken, nothing is written, no Spark is started. The driver makes its own plan under the lease.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from deltalake.exceptions import TableNotFoundError

from include.catalog import Catalog
from include.contracts.bronze_sources import LandingSource
from include.contracts.interval import Interval
from include.contracts.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec
from include.control.ageing import ageing_note
from include.control.batch import BatchSources, Stream, StreamPosition, Winner
from include.control.delta_log import read_commit
from include.control.kafka_cluster import KafkaCluster
from include.control.landing import files_by_the_thousand, landing_of, text_bytes
from include.control.ledger import Ledger
from include.control.matching import Matched, given_up, given_up_notes, match, split_by_age
from include.control.merge_size import bytes_of_batch
from include.control.offsets import count_partitions, plan_offsets, require_nothing_lost, waits_for_more
from include.control.overrides import override_note
from include.control.records import Records
from include.control.resolution import look
from include.control.restore import why_not
from include.control.source_ranges import changed_ranges, pin_sources
from include.paths import LakehousePaths
from include.settings import Settings
from include.specs.problem import SpecsRefusedError
from include.specs.refused import RefusedSpec, StatedSpec

_BYTES_A_MESSAGE = 100


@dataclass(frozen=True)
class Advice:
    """What a run of one table would do.

    Attributes:
        table: the table.
        nothing_new: there is nothing to do, and the last batch is complete and judged.
        message: the advice in one line.
        batch_seq: number of the last batch.
        version: the version it made.
        certified_version: the version readers may use.
        files: landing files to load, relative to the landing root; bronze only.
        bytes: their size.
        text_bytes: about how much a batch reads: in bronze as if it were text and not compressed, below it the bytes
            that `bytes_of_batch` expects.
        sources: source table -> (version consumed, version to consume up to); below bronze.
        notes: remarks, such as a spec that changed since the last batch.
    """

    table: str
    nothing_new: bool
    message: str
    batch_seq: int | None = None
    version: int | None = None
    certified_version: int | None = None
    files: tuple[str, ...] = ()
    bytes: int = 0
    text_bytes: int = 0
    sources: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Planner:
    """The plans of one lakehouse; its ledger is opened once for all of them.

    Args:
        catalog: the tables.
        settings: where everything lies.

    Attributes:
        records: the lakehouse's.
    """

    def __init__(self, catalog: Catalog, settings: Settings) -> None:
        self._catalog = catalog
        self._settings = settings
        self.records = Records(LakehousePaths(settings.root))

    def advise(self, spec: StatedSpec, interval: Interval, *, reprocess: bool = False) -> Advice:
        """What a run of `spec` for `interval` would do now.

        Raises:
            SpecError: the spec is wrong, or that of a table which it reads, directly or through others.
            NotReadyError: the landing folder is missing, no Kafka broker answers, or a source has no certified version
                yet.
            BadInputError: Kafka messages are gone that were never read.
            TornLogError: a log does not continue where it was last resolved.
        """
        if isinstance(spec, RefusedSpec):
            raise SpecsRefusedError(spec.problems)
        self._catalog.require_sound_sources(spec)
        records = self.records
        position = stream_position(spec, records.paths, records.ledger)
        base = _base(spec, position.last if position else None, records)
        if isinstance(spec, BronzeSpec) and spec.reads_kafka:
            return _with_messages(base, spec, position, self._settings)
        if isinstance(spec, BronzeSpec):
            source, of_table = spec.landing_source, (spec.table, position.table_id if position else "")
            listed = files_by_the_thousand(spec, landing_of(source.landing, self._settings.landing), interval)
            hopeless = given_up(records.ledger.failures(*of_table), source)
            return _with_files(base, source, match(listed, records.ledger.loaded_files(*of_table), hopeless))
        ranges = changed_ranges(spec, pin_sources(spec, records.paths, records.gates, position), records.paths)
        return replace(
            base,
            nothing_new=base.nothing_new and not ranges and not reprocess,
            message=_ranges_message(spec, ranges, reprocess=reprocess) + base.message,
            text_bytes=bytes_of_batch(spec.table, base.version, ranges, records.paths) if ranges else 0,
            sources=ranges,
        )


def _base(spec: AnySpec, last: Winner | None, records: Records) -> Advice:
    """What can be said before the sources were looked at."""
    unfinished = last is not None and not is_complete(spec, last, records)
    return Advice(
        table=spec.table,
        nothing_new=last is not None and not unfinished,
        message="; the last batch is still to be finished or judged" if unfinished else "",
        batch_seq=last.batch_seq if last else None,
        version=last.version if last else None,
        certified_version=records.gates.certified(spec.table),
        notes=(
            *spec_change_note(spec, last),
            *override_note(spec.table, records.gates),
            *ageing_note(spec, records.paths, datetime.now(UTC)),
        ),
    )


def _with_files(base: Advice, source: LandingSource, found: Matched) -> Advice:
    new = found.unread
    young, settled = split_by_age(new, source)
    waiting = f"; {len(young)} of them are younger than min_age and wait" if young else ""
    return replace(
        base,
        nothing_new=base.nothing_new and not new,
        message=f"{len(new)} new of {found.listed} files" + waiting + base.message,
        files=tuple(file.path for file in settled),
        notes=(*base.notes, *given_up_notes(found.given_up, source)),
        bytes=sum(file.size for file in settled),
        text_bytes=sum(text_bytes(file, source) for file in settled),
    )


def _with_messages(base: Advice, spec: BronzeSpec, position: StreamPosition | None, settings: Settings) -> Advice:
    source = spec.kafka_source
    held = KafkaCluster.of(source.kafka, settings.kafka).held(source)
    found = plan_offsets(source, position.last_sources if position else BatchSources(), held)
    require_nothing_lost(spec, found)
    commit = read_commit(LakehousePaths(settings.root).table(spec.table), base.version) if base.version else None
    waits = waits_for_more(source, found, commit, datetime.now(UTC))
    waiting = found.messages + found.later
    messages = f"{waiting:,} new messages in {count_partitions(found.ranges)} partitions"
    return replace(
        base,
        nothing_new=base.nothing_new and (waits or not found.is_new),
        message=messages + (", which wait for more (min_bytes_per_file)" if waits else "") + base.message,
        notes=(*base.notes, *(f"lost: {line}" for line in found.lost)),
        text_bytes=waiting * _BYTES_A_MESSAGE,
    )


def stream_position(spec: StatedSpec, paths: LakehousePaths, ledger: Ledger) -> StreamPosition | None:
    """Where the table's stream stands, read without writing; None when there is no table yet."""
    try:
        position, _ = look(paths.table(spec.table), Stream(spec.table), ledger)
    except TableNotFoundError:
        return None
    return position


def spec_change_note(spec: AnySpec, last: Winner | None) -> tuple[str, ...]:
    """A remark when the table's last batch was made by another spec."""
    if last is None or last.intent.spec_hash == spec.spec_hash:
        return ()
    return (
        f"the spec of {spec.table} changed since batch {last.batch_seq}: rows written before keep the old rules "
        "until their intervals run with reprocess",
    )


def is_complete(spec: AnySpec, last: Winner, records: Records) -> bool:
    """Whether a batch has its secondary writes and its gate result, and was taken back if that is wanted."""
    if not records.ledger.closed(last):
        return False
    if last.intent.sources.restores is not None:
        return True  # its rows have been judged, as another version
    result = records.gates.result(spec.table, last.version, spec.suite_hash)
    if result is None or result.passed or spec.on_refusal == "keep":
        return result is not None
    return bool(why_not(result, records.paths, records.gates))


def _ranges_message(spec: SilverSpec | GoldSpec, ranges: dict[str, tuple[int | None, int]], *, reprocess: bool) -> str:
    if reprocess:
        return "reads the interval's rows again"
    if not ranges:
        return f"nothing new in {', '.join(spec.source_tables)}"
    return ", ".join(f"{table} versions {_after(after)} to {upto}" for table, (after, upto) in ranges.items())


def _after(after: int | None) -> int:
    return 0 if after is None else after + 1

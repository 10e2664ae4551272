"""What a run of one table would do, and how the landing files and messages that wait add to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.kafka.cluster import KafkaCluster
from include.control.kafka.offsets import count_partitions, plan_offsets, require_nothing_lost, waits_for_more
from include.control.landing.landing import same_listing, text_bytes
from include.control.landing.matching import Matched, given_up_notes, split_by_age
from include.control.ledger.events import Failure
from include.control.log.batch import BatchSources, StreamPosition
from include.control.log.delta_log import read_commit
from include.paths import LakehousePaths
from include.settings import Settings

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
        newest_version: the newest version of the table; a later one than `version` after OPTIMIZE.
        certified_version: the version readers may use.
        brings: whether readers may find something new afterwards: a batch is committed, or an open one is finished.
        refused: why the gate refused the last batch, as far as that still stands.
        asks: what a person has to allow first, since a run has stopped before these deletes; or since it will.
        misfit: why a run would refuse to write, since the table does not fit its spec.
        young: how many landing files are younger than `min_age`, and wait.
        failing: landing files that have failed before as they are, each with its defect.
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
    newest_version: int | None = None
    certified_version: int | None = None
    brings: bool = False
    refused: str = ""
    asks: str = ""
    misfit: str = ""
    young: int = 0
    failing: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    bytes: int = 0
    text_bytes: int = 0
    sources: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_files(base: Advice, source: LandingSource, found: Matched, failures: Mapping[str, Failure]) -> Advice:
    """Add the landing files that a run would load; `failures` are those that failed before."""
    new = found.unread
    young, settled = split_by_age(new, source)
    failed = {path: failure.file for path, failure in failures.items()}
    failing = tuple(f"{file.path}: {failed[file.path].defect}" for file in settled if same_listing(file, failed))
    waiting = f"; {len(young)} of them are younger than min_age and wait" if young else ""
    again = f"; {len(failing)} of them failed before: {'; '.join(failing)}" if failing else ""
    return replace(
        base,
        nothing_new=base.nothing_new and not new,
        brings=base.brings or len(settled) > len(failing),
        young=len(young),
        failing=failing,
        message=f"{len(new)} new of {found.listed} files" + waiting + again + base.message,
        files=tuple(file.path for file in settled),
        notes=(*base.notes, *given_up_notes(found.given_up)),
        bytes=sum(file.size for file in settled),
        text_bytes=sum(text_bytes(file, source) for file in settled),
    )


def with_messages(base: Advice, spec: BronzeSpec, position: StreamPosition | None, settings: Settings) -> Advice:
    """Add the Kafka messages that a run would read.

    Raises:
        NotReadyError: no broker answers.
        BadInputError: messages are gone that were never read.
    """
    source = spec.kafka_source
    available = KafkaCluster.of(source.kafka, settings.kafka).available_offsets(source)
    found = plan_offsets(source, position.last_sources if position else BatchSources(), available)
    require_nothing_lost(spec, found)
    commit = read_commit(LakehousePaths(settings.root).table(spec.table), base.version) if base.version else None
    waits = waits_for_more(source, found, commit, datetime.now(UTC))
    waiting, is_new = found.messages + found.later, found.is_new and not waits
    messages = f"{waiting:,} new messages in {count_partitions(found.ranges)} partitions"
    return replace(
        base,
        nothing_new=base.nothing_new and not is_new,
        brings=base.brings or is_new,
        message=messages + (", which wait for more (min_bytes_per_file)" if waits else "") + base.message,
        notes=(*base.notes, *(f"lost: {line}" for line in found.lost)),
        text_bytes=waiting * _BYTES_A_MESSAGE,
    )

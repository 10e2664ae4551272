"""The advice of the planner for one table, with the landing files or Kafka messages that a run would load."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from millrace.contracts.counted import counted
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.kafka.offsets import plan_offsets, require_nothing_lost, waits_for_more
from millrace.control.landing.landing import is_unchanged
from millrace.control.landing.matching import MatchedFiles, given_up_notes, split_by_age
from millrace.control.log.batch import BatchSources, StreamPosition
from millrace.control.log.delta_log import read_commit
from millrace.errors import SpecError
from millrace.settings import Settings


@dataclass(frozen=True)
class Advice:
    """The advice for one table: what a run would do.

    Attributes:
        table: the table.
        nothing_new: there is nothing to do, and the last batch is complete and checked by its gate.
        message: the advice in one line.
        batch_seq: the number of the last batch.
        version: the table version that the last batch committed.
        newest_version: the newest version of the table; higher than `version` after OPTIMIZE.
        certified_version: the certified version.
        has_new_data: the run commits a batch or completes an open one, so that readers may find new data afterwards.
        refused: why the gate refuses the last batch; empty if it does not.
        approval_needed: the deletes that a person has to allow first; empty if a run would not stop before them.
        misfit: why a run would not write: the table does not fit its spec.
        young_files: the number of landing files that wait because they are younger than `min_age`.
        failing_files: landing files that make a run fail, each with the reason: they failed before and are unchanged,
            or they were loaded with other content and the spec rejects that.
        has_changed_files: whether the latter is the reason.
        files: bronze: the landing files to load, relative to the landing root.
        bytes: bronze: their size in bytes.
        is_partial: bronze: the folder has more files than were compared: there may be more new ones than `files`.
        sources: silver and gold: source table -> (version consumed, version to consume up to).
        notes: remarks, such as a change of the spec since the last batch.
    """

    table: str
    nothing_new: bool
    message: str
    batch_seq: int | None = None
    version: int | None = None
    newest_version: int | None = None
    certified_version: int | None = None
    has_new_data: bool = False
    refused: str = ""
    approval_needed: str = ""
    misfit: str = ""
    young_files: int = 0
    failing_files: tuple[str, ...] = ()
    has_changed_files: bool = False
    files: tuple[str, ...] = ()
    bytes: int = 0
    is_partial: bool = False
    sources: dict[str, tuple[int | None, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def with_files(base: Advice, source: LandingSource, matches: MatchedFiles) -> Advice:
    """Add the landing files that a run would load."""
    new = matches.unread
    young, settled = split_by_age(new, source)
    rejected = [file for file in settled if file.path in matches.changed] if source.on_changed_file == "reject" else []
    settled = rejected or settled  # a run that rejects a file loads none
    earlier = {path: failure.file for path, failure in matches.failures.items()}
    failing = tuple(f"{file.path}: {earlier[file.path].defect}" for file in settled if is_unchanged(file, earlier))
    are_young = counted(len(young), "of them is younger", "of them are younger")
    waiting = f"; {are_young} than min_age, so that a run waits" if young else ""
    repeated = f"; {len(failing)} of them failed before: {'; '.join(failing)}" if failing else ""
    of_all = counted(matches.count, "file")
    compared = f"the first {of_all} that were compared; the folder has more" if matches.is_partial else of_all
    return replace(
        base,
        nothing_new=base.nothing_new and not new and not matches.is_partial,
        has_new_data=base.has_new_data or len(settled) > len(failing or rejected),
        young_files=len(young),
        failing_files=failing or tuple(f"{file.path}: it was loaded before with other content" for file in rejected),
        has_changed_files=bool(rejected) and not failing,
        message=f"{len(new)} new of {compared}" + waiting + repeated + base.message,
        files=tuple(file.path for file in settled),
        notes=(*base.notes, *given_up_notes(matches.given_up)),
        bytes=sum(file.size for file in settled),
        is_partial=matches.is_partial,
    )


def with_messages(
    base: Advice, spec: BronzeSpec, position: StreamPosition | None, settings: Settings, now: datetime
) -> Advice:
    """Add the Kafka messages that a run at `now` would read.

    Raises:
        NotReadyError: no broker answers.
        BadInputError: the broker has deleted messages that no batch has read.
        SpecError: LAKEHOUSE_KAFKA is wrong, or the client of Kafka is not installed.
    """
    try:
        from millrace.control.kafka.cluster import KafkaCluster
    except ModuleNotFoundError as error:
        cause = f"{spec.table} reads Kafka, but {error.name} is not installed"
        raise SpecError(cause, "Install millrace[kafka].") from error
    source = spec.kafka_source
    available = KafkaCluster.of(source.kafka, settings.kafka).available_offsets(source)
    plan = plan_offsets(source, position.last_sources if position else BatchSources(), available)
    require_nothing_lost(spec, plan)
    commit = read_commit(settings.paths.table(spec.table), base.version) if base.version else None
    waits = waits_for_more(source, plan, commit, now)
    waiting, is_new = plan.messages + plan.later, plan.is_new and not waits
    messages = f"{counted(waiting, 'new message')} in {counted(plan.partitions, 'partition')}"
    return replace(
        base,
        nothing_new=base.nothing_new and not is_new,
        has_new_data=base.has_new_data or is_new,
        message=messages + (", which wait for more (min_bytes_per_file)" if waits else "") + base.message,
        notes=(*base.notes, *(f"lost: {line}" for line in plan.lost)),
    )

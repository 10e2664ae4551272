"""The facts about one table by which a person judges it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec
from millrace.control.gates.result import GateResult, Override
from millrace.control.gates.verdicts import Verdicts
from millrace.control.ledger.deletes import Deletes
from millrace.control.ledger.new_columns import NewColumn
from millrace.control.ledger.repairs import DecidedRepair
from millrace.control.ledger.states.contention import Contention
from millrace.control.ledger.states.failed_files import FailedFiles
from millrace.control.ledger.states.measures import Measures
from millrace.control.ledger.states.recent_batches import BatchKind, RecentBatch
from millrace.control.ledger.states.streams import Streams
from millrace.control.ledger.states.totals import Totals
from millrace.control.ledger.states.waiting_rows import WaitingRows
from millrace.control.maintenance.file_layout import FILES_PER_TABLE, LEAST_SMALL_FILES, target_file_bytes
from millrace.control.maintenance.health_days import HealthDays
from millrace.control.maintenance.retention import Reader, readers_in_danger, retention_of
from millrace.overview.tables.failed_task import FailedTask
from millrace.overview.tables.freshness import Freshness
from millrace.specs.invalid_spec import InvalidSpec


@dataclass(frozen=True)
class Questions:
    """What waits for a person, by the ledger.

    Attributes:
        deletes: deletes that need an approval.
        columns: fields of records without a declared column.
        repairs: repairs that were interrupted.
        has_lost_hold: whether the table says that it is held, though the ledger knows of no hold.
    """

    deletes: Sequence[Deletes] = ()
    columns: Sequence[NewColumn] = ()
    repairs: Sequence[DecidedRepair] = ()
    has_lost_hold: bool = False


def still_open(questions: Questions, spec: AnySpec, streams: Streams | None) -> Questions:
    """Return the questions that still stop a run: later batches, or another spec, may have settled them."""
    read = [end.intent.sources for end in streams.ends.values()] if streams else []
    deletes = [
        deletes
        for deletes in questions.deletes
        if not any((sources.ranges.get(deletes.source) or (None, -1))[1] >= deletes.source_version for sources in read)
    ]
    asks = isinstance(spec, BronzeSpec) and spec.needs_column_approval
    return replace(questions, deletes=deletes, columns=questions.columns if asks else ())


class Condition(StrEnum):
    """The condition of a table, the worst first."""

    WRONG_SPEC = "wrong spec"
    REFUSED = "refused"
    FAILED = "run failed"
    APPROVAL = "waits for approval"
    STALE = "stale"
    UNCHECKED = "not checked"
    CERTIFIED_BY_HAND = "certified by hand"
    CERTIFIED = "certified"
    NEVER_RUN = "never run"


SEVERITY = list(Condition)
"""The conditions in their order."""


@dataclass(frozen=True)
class TableOverview:
    """One table in the list of all tables.

    Attributes:
        spec: its spec, sound or wrong.
        condition: its condition.
        since: when the condition began; None if it is not known.
        newest: the newest version that a batch has written, or None.
        verdicts: the summary of its gate results; None if it has none.
        measures: rows and bytes of the newest version; None if it was never written.
        streams: the last batch of each of its streams; None if its state lacks them.
        batches: its newest batches, oldest first; empty if its state lacks them.
        waiting: the rows that wait in its quarantine; None if they were not counted yet.
        failed_files: its landing files that could not be loaded; None if they were not counted yet.
        totals: the sums over all its batches; None if its state lacks them.
        contention: the sums of what its writers lost to other writers; None if its state lacks them.
        health: the state of its storage on the last days; None if maintenance has not measured it.
        freshness: the age of its newest row against its rule; None without a rule or a result.
        questions: the open questions about it.
        failed: the tasks about it that have failed lately, the newest first.
        readers: those that read it, each with its version.
    """

    spec: AnySpec | InvalidSpec
    condition: Condition = Condition.WRONG_SPEC
    since: datetime | None = None
    newest: int | None = None
    verdicts: Verdicts | None = None
    measures: Measures | None = None
    streams: Streams | None = None
    batches: Sequence[RecentBatch] = ()
    waiting: WaitingRows | None = None
    failed_files: FailedFiles | None = None
    totals: Totals | None = None
    contention: Contention | None = None
    health: HealthDays | None = None
    freshness: Freshness | None = None
    questions: Questions = field(default_factory=Questions)
    failed: Sequence[FailedTask] = ()
    readers: tuple[Reader, ...] = ()

    @property
    def table(self) -> str:
        """Its name."""
        return self.spec.table

    @property
    def table_id(self) -> str:
        """Its Delta table id; empty if it was never written."""
        parts = (self.streams, self.measures, self.verdicts)
        return next((part.table_id for part in parts if part), "")

    @property
    def created(self) -> datetime | None:
        """Since when the table with this id exists; None if it was never written, or if that was not recorded."""
        return self.measures.created if self.measures else None

    @property
    def certified(self) -> int | None:
        """The version that readers may use."""
        return self.verdicts.certified if self.verdicts else None

    @property
    def certified_by_hand(self) -> Override | None:
        """The decision of a person because of which readers use that version; None if its gate passed it."""
        return self.verdicts.certified_by_hand if self.verdicts else None

    @property
    def certified_lag(self) -> int | None:
        """The number of versions by which readers are behind; None if there is no version."""
        return None if self.newest is None else max(self.newest - (-1 if self.certified is None else self.certified), 0)

    @property
    def uncertified_since(self) -> datetime | None:
        """When the first of its newest batches was closed that readers do not have yet; None if they have all."""
        certified = -1 if self.certified is None else self.certified
        return min((batch.at for batch in self.batches if batch.version > certified), default=None)

    @property
    def given_up_files(self) -> int:
        """The number of landing files that failed so often that no run tries them again."""
        source = self.spec.source if isinstance(self.spec, BronzeSpec) else None
        if self.failed_files is None or not isinstance(source, LandingSource):
            return 0
        return self.failed_files.given_up(source.max_attempts_per_file)

    @property
    def refusal(self) -> GateResult | None:
        """The refusal because of which readers do not get the newest rows; None if there is none."""
        refused = self.verdicts.refused if self.verdicts else None
        return refused if refused and refused.version > (-1 if self.certified is None else self.certified) else None

    @property
    def refused_since_changed_rules(self) -> GateResult | None:
        """The refusal of rows that readers use, by the rules of now; None if they pass these, or were not judged."""
        if self.verdicts is None or isinstance(self.spec, InvalidSpec):
            return None
        by_rules = (each for each in self.verdicts.judged if not each.is_verification)
        of_now = [each for each in by_rules if each.suite_hash == self.spec.suite_hash]
        return of_now[-1] if of_now and not of_now[-1].passed and of_now[-1].version in self.verdicts.same else None

    @property
    def is_restored(self) -> bool:
        """Whether the last batch has put the certified rows back on top of a refused version."""
        return self.last is not None and self.last.kind is BatchKind.RESTORE

    @property
    def last(self) -> RecentBatch | None:
        """The last batch."""
        return self.batches[-1] if self.batches else None

    def readers_in_danger(self, now: datetime) -> tuple[Reader, ...]:
        """Return the readers for whose sake VACUUM is refused."""
        return (
            () if isinstance(self.spec, InvalidSpec) else readers_in_danger(self.readers, retention_of(self.spec), now)
        )

    @property
    def applied_by_run(self) -> list[int]:
        """The rows that each of the last runs has applied, oldest first."""
        applied = Counter[str]()
        for batch in self.batches:
            applied[batch.run_id] += batch.rows.applied
        return list(applied.values())

    @property
    def expected_files(self) -> int | None:
        """The number of files that would do for its bytes; None if the number of files is not known."""
        if self.measures is None or self.measures.files is None or isinstance(self.spec, InvalidSpec):
            return None
        target = target_file_bytes(self.spec, self.measures.size)
        return max(-(-self.measures.size // target), self.measures.partitions)

    @property
    def has_far_too_many_files(self) -> bool:
        """Whether it has so many small files that maintenance cannot have run for long."""
        expected, files = self.expected_files, self.measures.files if self.measures else None
        return expected is not None and files is not None and files > expected + FILES_PER_TABLE

    @property
    def has_small_files(self) -> bool:
        """Whether maintenance would have to join many small files."""
        expected, files = self.expected_files, self.measures.files if self.measures else None
        return expected is not None and files is not None and files >= expected + LEAST_SMALL_FILES

"""Decide what maintenance does with a table, by its health; nothing is written, and no Spark is started."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from millrace.catalog import Catalog
from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.interval_args import MOST_BYTES
from millrace.contracts.spec.table_spec import AnySpec, GoldSpec
from millrace.control.changes.table_properties import differing
from millrace.control.maintenance.file_layout import Rewrite
from millrace.control.maintenance.health import StorageState, TableHealth, table_health
from millrace.control.maintenance.log_files import expired_commits, read_commits
from millrace.control.maintenance.old_files import oldest_whole
from millrace.control.maintenance.retention import length_of
from millrace.control.maintenance.tombstones import forgets_soon, old_tombstones, tombstones_to_search
from millrace.control.maintenance.verification_due import why_not_due
from millrace.control.ops_tables import OpsTables


class Step(StrEnum):
    """One thing that maintenance does with a table, in the order in which it does them."""

    SET_PROPERTIES = "set properties"
    VERIFY = "verify"
    BIN_PACK = "bin-pack"
    Z_ORDER = "z-order"
    CHECKPOINT = "checkpoint"
    CLEAN_LOG = "clean log"
    VACUUM = "vacuum"
    FORGET = "forget deleted keys"

    @property
    def job(self) -> Job:
        """The job that does it."""
        return _JOBS[self]

    @property
    def deletes(self) -> bool:
        """Whether it deletes something that cannot be computed again."""
        return self.job is Job.TABLE_VACUUM


_JOBS = {
    Step.SET_PROPERTIES: Job.TABLE_LOG,
    Step.VERIFY: Job.TABLE_VERIFY,
    Step.BIN_PACK: Job.TABLE_OPTIMIZE,
    Step.Z_ORDER: Job.TABLE_OPTIMIZE,
    Step.CHECKPOINT: Job.TABLE_LOG,
    Step.CLEAN_LOG: Job.TABLE_LOG,
    Step.VACUUM: Job.TABLE_VACUUM,
    Step.FORGET: Job.TABLE_VACUUM,
}

_COMPARABLE = 10
"""Nobody knows how long a rewrite takes that is larger than this times the last one."""

_IF_LEFT = {
    Step.SET_PROPERTIES: "the table does not do what its spec says, until the next batch",
    Step.VERIFY: "nobody knows whether these groups still equal their sources",
    Step.BIN_PACK: "readers open more and more files, and each commit lists them",
    Step.Z_ORDER: "merges copy more files for the same rows, and readers skip fewer",
    Step.CHECKPOINT: "readers read all these commits each time, and the log is not cleaned",
    Step.CLEAN_LOG: "the log grows, and still says what values deleted rows had",
    Step.VACUUM: "the files stay on disk, and what they hold can still be read there",
    Step.FORGET: "each merge reads more deleted keys",
}


@dataclass(frozen=True)
class MaintenanceAction:
    """Something that maintenance would do with a table now.

    Attributes:
        table: the table.
        step: what.
        reason: why.
        if_left: what happens if nobody does it.
        size: the bytes that it rewrites or deletes; None if the log does not tell.
        seconds: how long it takes, by what the same work took before; None if it was never done.
        needs_approval: whether a person has to allow it, because the table keeps what it deletes for a short time only.
    """

    table: str
    step: Step
    reason: str
    if_left: str
    size: int | None = None
    seconds: float | None = None
    needs_approval: bool = False


@dataclass(frozen=True)
class PlannedTable:
    """A table with its health, and what maintenance would do with it.

    Attributes:
        table: the table.
        storage: the state of its storage.
        reason: why.
        health: its measures.
        actions: what maintenance would do with it now, in its order.
    """

    table: str
    storage: StorageState
    reason: str
    health: TableHealth
    actions: tuple[MaintenanceAction, ...]


def planned_table(spec: AnySpec, catalog: Catalog, ops: OpsTables, now: datetime) -> PlannedTable | None:
    """Measure a table, and plan its maintenance; None if it was never written.

    Raises:
        TornLogError: a log cannot be read.
        MillraceError: its retention has an unknown form.
    """
    health = table_health(spec, catalog, ops, now)
    if health is None:
        return None
    actions = tuple(
        MaintenanceAction(
            spec.table,
            step,
            reason,
            _IF_LEFT[step],
            size,
            _seconds(health, step, size),
            needs_approval=(step is Step.VACUUM and health.needs_approval)
            or (step is Step.FORGET and forgets_soon(spec)),
        )
        for step, reason, size in _steps(spec, health, catalog, ops, now)
    )
    return PlannedTable(spec.table, health.storage, health.reason, health, actions)


def actions_of_run(
    tables: Iterable[PlannedTable],
    *,
    deletes: bool = True,
    is_allowed: bool = False,
    most_bytes: int = MOST_BYTES,
    most_actions: int | None = None,
) -> list[MaintenanceAction]:
    """Return the actions of one run, a job of a table once; what is over is left to the next run.

    The tables come first that were planned the longest ago, so that each has its turn, also after one that fails.

    Args:
        tables: the planned tables.
        deletes: whether the run may delete files and deleted keys.
        is_allowed: whether a person allows the run to delete what a table keeps for a short time only.
        most_bytes: the most bytes that it rewrites, but one rewrite at least.
        most_actions: the most actions; None for any number.
    """
    never = datetime.min.replace(tzinfo=UTC)
    chosen: dict[tuple[str, Job], MaintenanceAction] = {}
    left, has_rewrite = most_bytes, False
    for table in sorted(tables, key=lambda each: each.health.maintained.planned_at or never):
        for action in table.actions:
            key, size = (action.table, action.step.job), 0 if action.step.deletes else action.size or 0
            fits = (most_actions is None or len(chosen) < most_actions) and (size <= left or not has_rewrite)
            may = deletes and (is_allowed or not action.needs_approval) if action.step.deletes else True
            if key not in chosen and fits and may:
                chosen[key] = action
                left, has_rewrite = max(left - size, 0), has_rewrite or size > 0
    return list(chosen.values())


def _steps(
    spec: AnySpec, health: TableHealth, catalog: Catalog, ops: OpsTables, now: datetime
) -> Iterator[tuple[Step, str, int | None]]:
    """Yield each step with its reason and its bytes."""
    if health.properties:
        yield Step.SET_PROPERTIES, differing(health.properties), None
    if isinstance(spec, GoldSpec) and spec.values_to_verify and not why_not_due(spec, catalog, ops):
        yield Step.VERIFY, "these rows were not compared with their sources yet", None
    reason = health.layout.reason(ordered=bool(spec.zorder_by))
    match health.rewrite:
        case Rewrite.BIN_PACK:
            yield Step.BIN_PACK, reason, health.layout.small_bytes
        case Rewrite.Z_ORDER:
            yield Step.Z_ORDER, reason, health.layout.size
        case Rewrite.NONE if beside := health.joinable:
            reasons = "; ".join(f"{each.name}: {each.layout.reason(ordered=False)}" for each in beside)
            yield Step.BIN_PACK, reasons, sum(each.layout.small_bytes for each in beside)
    if reasons := read_commits(health.without_checkpoint):
        yield Step.CHECKPOINT, reasons, None
    if reasons := expired_commits(health.uncleaned):
        yield Step.CLEAN_LOG, reasons, None
    if health.refusals:
        return
    if due := health.due:
        files, size = counted(len(due), "file"), sum(file.size for file in due)
        stays = oldest_whole(ops.paths.table(spec.table), health.retention, now)
        needed = f"no version of the last {length_of(health.retention)} needs {files}"
        yield Step.VACUUM, f"{needed}; the oldest that stays is version {stays}", size
    if "tombstones" not in health.logs:
        return
    expired = old_tombstones(spec, ops.paths, ops.ledger, now)
    if expired.may_go:
        yield Step.FORGET, f"{counted(expired.keys, 'deleted key')} past {expired.retain}", None
    elif health.maintained.searched < health.version and (keys := tombstones_to_search(spec, ops)):
        yield Step.FORGET, f"{counted(keys, 'deleted key')}: some may exist again", None


def _seconds(health: TableHealth, step: Step, size: int | None) -> float | None:
    """Return how long a rewrite takes, by the last one; None if that was a tenth of it or less.

    Half a minute of each is for the start of Spark and the commit, so that a smaller one takes as long.
    """
    last = health.maintained.rewritten
    if step.job is not Job.TABLE_OPTIMIZE or not size or last is None or size > _COMPARABLE * last.size:
        return None
    return last.seconds * max(size / last.size, 1)

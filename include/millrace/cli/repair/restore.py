"""`lakehouse repair restore`: the plan in words, and its execution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from millrace.catalog import Catalog
from millrace.cli.catalog import command_catalog
from millrace.cli.runs.deciding_alone import AskingDag, decided_alone
from millrace.cli.selection import new_run_id, parse_instant
from millrace.contracts.counted import counted
from millrace.control.leases.store import lakehouse_leases
from millrace.control.log.batch import Repair
from millrace.control.ops_tables import OpsTables
from millrace.overview.lineage.restricted import Restrictions
from millrace.reading.certified import certified
from millrace.repair.restore_plan import ChangedBatch, RestorePlan
from millrace.repair.restoring import RestoreRequest
from millrace.settings import Settings

_MOST = 20
"""The most lines of one kind that a person is shown; `--json` has all of them."""


def asked_restore(
    table: str, to: str, settings: Settings, *, no_reload: bool
) -> tuple[RestoreRequest, Catalog, OpsTables]:
    """Return the restore that a command asks for.

    Raises:
        SpecError: the spec is wrong, or there is no such table.
        NotReadyError: no version was certified at the time.
        typer.BadParameter: `to` is neither a version nor a time.
    """
    catalog, ops = command_catalog(settings.tables), OpsTables(settings.paths)
    spec = catalog.spec(table)
    version = int(to) if to.isdecimal() else certified(table, settings.root, at=_instant(to)).version
    restricted = Restrictions(catalog.specs).of(table)
    return RestoreRequest(spec, version, no_reload, restricted), catalog, ops


def execute_restore(
    asked: RestoreRequest, plan_id: str, why: str, catalog: Catalog, ops: OpsTables, settings: Settings
) -> list[str]:
    """Restore as shown under the id, and return what follows.

    Raises:
        ApprovalError: a second person has to approve it.
        MillraceError: as `RestoreRequest.execute`.
    """
    person, spec = decided_alone(AskingDag.REPAIR, settings), asked.spec
    run_id = new_run_id(datetime.now(UTC))
    leases = lakehouse_leases(settings.paths, run_id, spec.conflicts.wait_for_lease)
    winner = asked.execute(Repair(id=plan_id, said_by=person, why=why), run_id, catalog, ops, leases)
    readers = ops.gates.certified(spec.table)
    return [
        f"{spec.table}: version {winner.version} has the rows of version {asked.version}.",
        f"Readers use version {readers}.",
        "Run the tables that read it. What they cannot follow, they say, with the rebuild that helps.",
    ]


def plan_lines(plan: RestorePlan) -> Iterator[str]:
    """Yield the plan in words; the last line says how to execute it."""
    table, after = plan.table, plan.newest + 1
    yield f"{table}: version {after} would have the rows of version {plan.restores}. Nothing was written."
    changes = _changes(plan.inserted, plan.updated, plan.deleted)
    yield f"Rows: {plan.rows_now:,} now, {plan.rows_after:,} after: {changes}"
    yield from _some(
        [
            f"  {', '.join(f'{name} {value}' for name, value in each['partition'].items())}: "
            f"{_changes(each['inserted'], each['updated'], each['deleted'])}"
            for each in plan.partitions
        ]
    )
    if plan.columns:
        yield f"Columns with other values: {', '.join(f'{name} ({rows:,})' for name, rows in plan.columns.items())}"
    yield from (f"Column {line}" for line in plan.definition)
    if plan.samples:
        yield "Such as:"
        for each in plan.samples:
            key = ", ".join(f"{name} {value}" for name, value in each["key"].items())
            yield f"  {each['kind']}: {key}"
    yield from _batches("Batches that are undone", plan.undone)
    yield from _batches("Batches that come back", plan.redone)
    if plan.files:
        fate = "stay undone" if plan.no_reload else "the next runs of their intervals load again"
        yield f"Landing files that {fate}: {len(plan.files):,}"
        yield from _some([f"  {file}" for file in plan.files])
    for secondary in plan.secondary:
        yield f"{secondary.name}: {secondary.rows_now:,} rows now, {secondary.rows_after:,} after"
    if plan.replays_undone:
        replays = counted(plan.replays_undone, "replay is", "replays are")
        yield f"{replays} undone: the rows wait in quarantine again"
    yield f"Readers: version {plan.certified} now, version {after} after"
    yield from _some([f"  {reader.name}: version {reader.version}" for reader in plan.readers])
    yield "Downstream:" if plan.downstream else "No table reads it."
    yield from (f"  {each}" for each in plan.downstream)
    yield f"To do exactly this: {plan.command} --why ..."


def _changes(inserted: int, updated: int, deleted: int) -> str:
    return f"{inserted:,} inserted, {updated:,} updated, {deleted:,} deleted"


def _batches(title: str, batches: Sequence[ChangedBatch]) -> Iterator[str]:
    if batches:
        yield f"{title}:"
    yield from _some(
        [
            f"  batch {batch.batch_seq} (version {batch.version}), {batch.interval}, run {batch.run_id}: "
            + ("not counted" if batch.applied is None else counted(batch.applied, "row"))
            for batch in batches
        ]
    )


def _some(lines: Sequence[str]) -> Iterator[str]:
    yield from lines[:_MOST]
    if len(lines) > _MOST:
        yield f"  and {len(lines) - _MOST:,} more, which --json lists"


def _instant(text: str) -> datetime:
    instant = parse_instant(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)

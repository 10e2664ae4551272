"""Rebuild a table from its sources, next to the table in use, and replace that table when the gate has passed.

A request for a rebuild in progress resumes it. Only one driver works on it at a time. The interval is only a label.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.job.requests import RebuildRequest
from millrace.contracts.row_status import RowStatus
from millrace.control.changes.staging import remove_staging, staged_paths
from millrace.control.changes.table_diff import table_diff
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.rebuilds import Rebuild, RebuildEvent
from millrace.control.ledger.states.measures import table_rows
from millrace.control.log.batch import Winner
from millrace.control.log.delta_log import latest_version
from millrace.control.log.stored_tables import is_table
from millrace.control.log.streams import NONE, concurrency_at, concurrency_of
from millrace.control.maintenance.retention import retention_of
from millrace.control.planning.stream_positions import stream_position
from millrace.control.quarantine.rows import count_by_status
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import BadInputError, NotReadyError, Outcome
from millrace.specs.table_graph import TableGraph
from millrace_spark.jobs.run_intervals import RUN
from millrace_spark.layers.rebuild.open_batches import close_open_batch
from millrace_spark.layers.rebuild.staged_builds import StagedBuild, missing_landing_files
from millrace_spark.layers.rebuild.switching import Switch
from millrace_spark.layers.rebuild.undoing import tables_to_undo, undo_rebuild
from millrace_spark.runtime.context import JobContext
from millrace_spark.runtime.entrypoint import main

PATIENCE = timedelta(minutes=1)
"""How long a driver waits for another driver of the same rebuild. The lease of a killed driver expires in that time."""


def run(context: JobContext) -> JobReport:
    """Start, resume, cancel or undo the rebuild of the job's table; a dry run reports what it would do.

    Raises:
        NotReadyError: there is no table yet; its usual run creates it.
        BadInputError: landing files that it needs no longer exist, or another rebuild contains the table.
        DeletesRefusedError: more absent keys would be deleted than the spec allows, and no person has allowed it.
        GateFailedError: the rebuilt table did not pass its gate.
        OverrideError: the refused version of the rebuilt table cannot be let pass.
        ConflictError: another writer committed at the moment of the switch.
        LeaseLostError: another driver works on the rebuild of this table.
    """
    request = RebuildRequest.load(context.args.request) if context.args.request else RebuildRequest()
    if context.args.dry_run:
        return _handle(context, request)
    with lakehouse_leases(context.paths, context.args.run_id, PATIENCE).table(f"rebuild.{context.spec.table}"):
        return _handle(context, request)


def _handle(context: JobContext, request: RebuildRequest) -> JobReport:
    _require_one_stream(context, [context.spec.table])
    if request.undo:
        return _undo(context, request)
    if request.plan and context.ops.rebuilds.is_done_by(context.args.run_id, context.spec.table):
        return _report(context, Outcome.NO_OP, "this run has rebuilt it; another one needs another approval", {})
    rebuild = _active_rebuild(context)
    if request.cancel:
        return _cancel(context, rebuild, request)
    tables = rebuild.tables if rebuild else _tables(context, downstream=request.downstream)
    if rebuild and rebuild.specs != _hashes(context, tables):
        msg = f"{context.spec.table}: specs changed since the start of rebuild {rebuild.id}; nothing was switched"
        raise BadInputError(msg, f"Restore the specs, or give it up: lakehouse rebuild {context.spec.table} --cancel")
    _require_one_stream(context, tables)
    for table in tables:
        if not is_table(context.paths.table(table)):
            raise NotReadyError(f"{table}: there is no table to rebuild; its next run creates it")
    missing = [path for table in tables for path in missing_landing_files(context, context.catalog.spec(table))]
    refused = [each for each in _builds(context, rebuild) if each.refusal]
    if request.allow_refused and not refused:
        raise BadInputError(
            f"{context.spec.table}: no gate has refused a new table of it, so that there is nothing to let pass",
            f"Ask for the rebuild alone: lakehouse rebuild {context.spec.table} goes on where an earlier one ended.",
        )
    is_resumed = rebuild is not None and rebuild.run_id == context.args.run_id
    if context.args.dry_run or (request.plan and (request.allow_refused or not is_resumed)):
        gone = {"tables": list(tables), "gone": missing}
        replayed = (note for table in tables for note in _replayed_notes(context, table))
        notes = (
            *_missing_notes(missing),
            *_changes(context, tables),
            *replayed,
            *(each.refusal_text for each in refused),
        )
        plan = _report(context, Outcome.NO_OP, _plan(context, tables, rebuild), gone, notes)
        if context.args.dry_run:
            return plan
        if request.plan != plan.for_people:
            raise BadInputError(
                f"{context.spec.table}: the rebuild would do something else than what was approved",
                f"Clear the task that reported the plan, with those after it: it asks again. Now it {plan.message}",
            )
    if missing and not request.allow_missing:
        raise BadInputError(_missing_files_message(context.spec.table, missing))
    if rebuild is None:
        for ended in context.ops.rebuilds.ended_ids(context.spec.table):
            remove_staging(staged_paths(context.paths, ended, tables))
        hashes = _hashes(context, tables)
        rebuild = context.ops.rebuilds.start(context.spec.table, tables, hashes, request, context.args.run_id)
    winners = [_rebuild_table(context, rebuild, table, request) for table in tables]
    context.ops.rebuilds.record(RebuildEvent.DONE, rebuild, request, context.args.run_id)
    remove_staging(staged_paths(context.paths, rebuild.id, tables))
    switched = {"tables": {winner.intent.table: winner.version for winner in winners}, "rebuild": rebuild.id}
    return _report(context, Outcome.COMMITTED, _message(context, winners), switched, _missing_notes(missing))


def _require_one_stream(context: JobContext, tables: Sequence[str]) -> None:
    """Require that no table has several streams: only its own stream protects a switch from batches in progress."""
    for table in tables:
        path, spec = context.paths.table(table), context.catalog.spec(table)
        if concurrency_of(spec) != NONE or (is_table(path) and concurrency_at(path) != NONE):
            raise BadInputError(
                f"{table}: a table with concurrent_by cannot be rebuilt, and no rebuild of it undone",
                "Remove concurrent_by from its spec and run the table once. After the rebuild write the key again.",
            )


def _rebuild_table(context: JobContext, rebuild: Rebuild, table: str, request: RebuildRequest) -> Winner:
    """Build one table and switch it, unless an earlier try switched it."""
    approver = request.said_by if request.allow_deletes else ""
    of_table = _of_table(context, table, allow_deletes=approver)
    build = StagedBuild(of_table, rebuild, table, RUN)
    if not build.is_switched:
        if request.allow_refused:
            build.let_pass(request.said_by, request.why)
        with of_table.leases.table(table):
            close_open_batch(of_table)
        build.build()
        with of_table.leases.table(table):
            close_open_batch(of_table)
            build.build()  # The lease excludes other writers: now load what has arrived since.
            if (lost := build.lost_files()) and not request.allow_missing:
                raise BadInputError(_missing_files_message(table, lost))
            build.require_keys()
            return Switch(of_table.spec, build).run()
    winners = context.ops.ledger.batches(table, build.id, -1)
    return next(winner for winner in winners if winner.token == rebuild.token(table))


def _builds(context: JobContext, rebuild: Rebuild | None) -> list[StagedBuild]:
    """Return the tables of a rebuild in progress; none if there is none."""
    return [StagedBuild(_of_table(context, table), rebuild, table, RUN) for table in rebuild.tables] if rebuild else []


def _active_rebuild(context: JobContext) -> Rebuild | None:
    """Return the rebuild in progress that contains the job's table.

    Raises:
        BadInputError: it is a rebuild of another table.
    """
    table, active = context.spec.table, context.ops.rebuilds.active(context.catalog.specs)
    rebuild = next((rebuild for rebuild in active if table in rebuild.tables), None)
    if rebuild and rebuild.table != table:
        way_out = f"Resume that rebuild: lakehouse rebuild {rebuild.table}. Or give it up, with --cancel."
        raise BadInputError(f"{table}: a rebuild of {rebuild.table} in progress contains this table", way_out)
    return rebuild


def _hashes(context: JobContext, tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(context.catalog.spec(table).spec_hash for table in tables)


def _tables(context: JobContext, *, downstream: bool) -> tuple[str, ...]:
    """Return the job's table and, if asked, those that get rows from it, directly or not, in the order of a run.

    The next run creates tables downstream that do not exist yet.
    """
    if not downstream:
        return (context.spec.table,)
    specs, folder = context.catalog.specs, context.paths.table
    sources = {table: spec.source_tables for table, spec in specs.items() if is_table(folder(table))}
    selected = TableGraph(sources).downstream(context.spec.table)
    return tuple(table for table in specs if table in selected)


def _cancel(context: JobContext, rebuild: Rebuild | None, request: RebuildRequest) -> JobReport:
    if rebuild is None:
        return _report(context, Outcome.NO_OP, "no rebuild is in progress", {})
    if context.args.dry_run:
        return _report(context, Outcome.NO_OP, f"would cancel the rebuild {rebuild.id}", {"rebuild": rebuild.id})
    switched = [table for table in rebuild.tables if StagedBuild(context, rebuild, table, RUN).is_switched]
    context.ops.rebuilds.record(RebuildEvent.CANCELLED, rebuild, request, context.args.run_id)
    remove_staging(staged_paths(context.paths, rebuild.id, rebuild.tables))
    stays = f"; {', '.join(switched)} was switched before and stays" if switched else "; readers saw nothing of it"
    return _report(context, Outcome.COMMITTED, f"the rebuild was cancelled{stays}", {"rebuild": rebuild.id})


def _undo(context: JobContext, request: RebuildRequest) -> JobReport:
    """Undo the last rebuild of the job's table and, if the request says so, of the downstream tables rebuilt with it.

    After an interruption, the same request undoes the rest: tables that are undone already stay as they are.
    """
    together = tables_to_undo(context, _tables(context, downstream=True))
    undone = together if request.downstream else [table for table in together if table == context.spec.table]
    if not undone:
        raise NotReadyError(f"{context.spec.table}: the last rebuild was undone")
    of_table = {table: _of_table(context, table) for table in undone}
    for each in of_table.values():
        if rebuild := _active_rebuild(each):
            way_out = f"Give it up first: lakehouse rebuild {rebuild.table} --cancel"
            raise BadInputError(f"{each.spec.table}: a rebuild is in progress", way_out)
    if context.args.dry_run:
        message = f"would restore the rows that the last rebuild replaced: {', '.join(undone)}"
        return _report(context, Outcome.NO_OP, message, {"tables": undone})
    switched = {}
    for table, each in of_table.items():
        with each.leases.table(table):
            close_open_batch(each)
            switched[table] = undo_rebuild(each).version
    lines = [f"{table}: version {version} has the rows from before the rebuild" for table, version in switched.items()]
    verdicts = [context.ops.gates.verdicts(table) for table in switched]
    lines += [verdict.found_wrong.refused for verdict in verdicts if verdict and verdict.found_wrong]
    if stay := ", ".join(table for table in together if table not in undone):
        lines.append(f"still as rebuilt: {stay}; --undo --downstream undoes these as well")
    lines.append("The next run reads everything that has arrived since the rebuild.")
    return _report(context, Outcome.COMMITTED, "\n".join(lines), {"tables": switched})


def _of_table(context: JobContext, table: str, **more: Any) -> JobContext:
    """Return the job's context for another table of the rebuild."""
    args = context.args.model_copy(update={"table": table, **more})
    return JobContext(args, context.is_to_stop, context.ops, settings=context.settings)


def _plan(context: JobContext, tables: Sequence[str], rebuild: Rebuild | None) -> str:
    rows = {table: table_rows(path := context.paths.table(table), latest_version(path)) for table in tables}
    names = ", ".join(
        f"{table} ({counted(number, 'row')} now) by its spec {context.catalog.spec(table).spec_hash[:8]}"
        for table, number in rows.items()
    )
    return f"would {'resume the rebuild of' if rebuild else 'rebuild'} {names}. Nothing was written: this is a dry run."


def _changes(context: JobContext, tables: Sequence[str]) -> list[str]:
    """Return how the tables differ from their specs, as `lakehouse diff` tells it: what the rebuild changes."""
    ops, lines = context.ops, list[str]()
    for spec in map(context.catalog.spec, tables):
        position = stream_position(spec, context.paths, ops.ledger)
        lines += table_diff(spec, position.last if position else None, ops).changed_lines()
    return lines


def _missing_notes(missing: Sequence[str]) -> tuple[str, ...]:
    gone = counted(len(missing), "loaded landing file no longer exists", "loaded landing files no longer exist")
    return (f"{gone}, such as {missing[0]}",) if missing else ()


def _replayed_notes(context: JobContext, table: str) -> tuple[str, ...]:
    replayed = count_by_status(StoredRows(table, context.paths, context.ops.quarantine))[RowStatus.REPLAYED]
    rows = counted(replayed, "replayed row", "replayed rows")
    return (
        (f"{rows} of {table} will wait for the replay again, unless the rules now accept what was delivered",)
        if replayed
        else ()
    )


def _message(context: JobContext, winners: Sequence[Winner]) -> str:
    lines = []
    for winner in winners:
        table, version = winner.intent.table, winner.version
        path = context.paths.table(table)
        kept_until = context.now() + min(retention_of(context.catalog.spec(table)), timedelta(days=36500))
        before, after = table_rows(path, version - 1), table_rows(path, version)
        lines.append(
            f"{table} was rebuilt: version {version} has {counted(after, 'row')}, the table before had {before:,}. The "
            f"old rows can be read as version {version - 1} until {kept_until:%Y-%m-%d}"
        )
        waiting = count_by_status(StoredRows(table, context.paths, context.ops.quarantine))
        if fixed := waiting[RowStatus.FIXED]:
            wait = counted(fixed, "fixed row waits", "fixed rows wait")
            lines.append(f"{wait} for the replay: lakehouse quarantine replay {table} --all")
        if refused := waiting[RowStatus.OPEN]:
            lines.append(
                f"{counted(refused, 'row waits', 'rows wait')} in quarantine: lakehouse quarantine show {table}"
            )
    return "\n".join(lines)


def _missing_files_message(table: str, missing: Sequence[str]) -> str:
    names = "\n".join(f"  {path}" for path in missing[:20])
    more = f"\n  and {len(missing) - 20} more" if len(missing) > 20 else ""
    return (
        f"{table}: {counted(len(missing), 'landing file')} that the table once loaded cannot be loaded; nothing was "
        f"switched:\n{names}{more}\nHave them delivered again, or continue without their rows: "
        "lakehouse rebuild --allow-missing"
    )


def _report(
    context: JobContext, outcome: Outcome, message: str, details: dict[str, Any], notes: tuple[str, ...] = ()
) -> JobReport:
    path = context.paths.table(context.spec.table)
    return JobReport(
        **reported_run(Job.TABLE_REBUILD, context.args),
        outcome=outcome,
        message=message if message.startswith(context.spec.table) else f"{context.spec.table}: {message}",
        version=latest_version(path) if is_table(path) else None,
        certified_version=context.ops.gates.certified(context.spec.table),
        details=details,
        notes=notes,
    )


if __name__ == "__main__":
    main(Job.TABLE_REBUILD, run)

"""Build a table anew from its sources, beside the one in use, and put it in its place once its gate has passed it.

A rebuild that is under way goes on where it was, whoever asks; one driver at a time works at it. The interval is a
label.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from include.contracts.job.args import Job
from include.contracts.job.rebuild_request import RebuildRequest
from include.contracts.job.report import JobReport
from include.control.changes.staging import remove_staging, staged_paths
from include.control.leases.store import lakehouse_leases
from include.control.ledger.measures import table_rows
from include.control.ledger.rebuilds import Rebuild, RebuildEvent
from include.control.log.batch import Winner
from include.control.log.delta_log import latest_version
from include.control.log.stored_tables import is_table
from include.control.maintenance.retention import retention_of
from include.errors import BadInputError, NotReadyError, Outcome
from spark_jobs.jobs.run_intervals import RUN
from spark_jobs.layers.rebuild.staged_builds import StagedBuild, gone_files
from spark_jobs.layers.rebuild.switching import Switch
from spark_jobs.layers.rebuild.undoing import tables_to_undo, undo_rebuild
from spark_jobs.runtime.context import JobContext
from spark_jobs.runtime.entrypoint import main

PATIENCE = timedelta(minutes=1)
"""How long a driver waits for another one at the same rebuild; the lease of one that was killed expires meanwhile."""


def run(context: JobContext) -> JobReport:
    """Start, resume, cancel or undo the rebuild of the job's table; a dry run says what it would do.

    Raises:
        NotReadyError: there is no table yet; its usual run makes it.
        BadInputError: landing files that it needs are not there any more, or another rebuild is about the same tables.
        DeletesRefusedError: more keys would be deleted by absence than the spec lets go, and nobody has allowed it.
        GateFailedError: what was built did not pass its gate.
        ConflictError: somebody else committed at the moment of the switch.
        LeaseLostError: another driver works at the rebuild of this table.
    """
    request = RebuildRequest.load(context.args.request) if context.args.request else RebuildRequest()
    if context.args.dry_run:
        return _done(context, request)
    with lakehouse_leases(context.paths, context.args.run_id, PATIENCE).table(f"rebuild.{context.spec.table}"):
        return _done(context, request)


def _done(context: JobContext, request: RebuildRequest) -> JobReport:
    if request.undo:
        return _undone(context, request)
    rebuild = _under_way(context)
    if request.cancel:
        return _cancelled(context, rebuild, request)
    tables = rebuild.tables if rebuild else _tables(context, downstream=request.downstream)
    if rebuild and rebuild.specs != _hashes(context, tables):
        msg = f"{context.spec.table}: specs changed since rebuild {rebuild.id} began; nothing was switched."
        raise BadInputError(f"{msg}\nPut them back, or begin anew: lakehouse rebuild {context.spec.table} --cancel")
    for table in tables:
        if not is_table(context.paths.table(table)):
            raise NotReadyError(f"{table}: there is no table to build anew; its next run makes it")
    gone = [path for table in tables for path in gone_files(context, context.catalog.spec(table))]
    if context.args.dry_run:
        return _report(
            context, Outcome.NO_OP, _plan(context, tables, rebuild), {"tables": list(tables), "gone": gone}, gone
        )
    if gone and not request.allow_missing:
        raise BadInputError(_gone_message(context.spec.table, gone))
    rebuild = rebuild or _start(context, tables, request)
    winners = [_rebuilt(context, rebuild, table, request) for table in tables]
    context.ops.rebuilds.record(RebuildEvent.DONE, rebuild, request, context.args.run_id)
    remove_staging(staged_paths(context.paths, rebuild.id, tables))
    switched = {"tables": {winner.intent.table: winner.version for winner in winners}, "rebuild": rebuild.id}
    return _report(context, Outcome.COMMITTED, _said(context, winners), switched, gone)


def _rebuilt(context: JobContext, rebuild: Rebuild, table: str, request: RebuildRequest) -> Winner:
    """Build one table and switch it, unless that was done before."""
    allowing = request.said_by if request.allow_deletes else ""
    of_table = _of_table(context, table, allow_deletes=allowing)
    build = StagedBuild(of_table, rebuild, table, RUN)
    if not build.is_switched:
        build.build()
        with of_table.leases.table(table):
            build.build()  # what has come since: nobody else writes the table now
            if (lost := build.lost_files()) and not request.allow_missing:
                raise BadInputError(_gone_message(table, lost))
            build.require_keys()
            return Switch(of_table.spec, build).run()
    winners = context.ops.ledger.batches(table, build.id, -1)
    return next(winner for winner in winners if winner.token == rebuild.token(table))


def _under_way(context: JobContext) -> Rebuild | None:
    """The rebuild of the job's table that is under way.

    Raises:
        BadInputError: the table is part of a rebuild that was asked for at another one.
    """
    found = context.ops.rebuilds.active(context.catalog.specs)
    mine = [rebuild for rebuild in found if context.spec.table in rebuild.tables]
    if mine and mine[0].table != context.spec.table:
        msg = f"{context.spec.table}: is being built anew with {mine[0].table}"
        way_out = f"Go on with that one: lakehouse rebuild {mine[0].table}. Or give it up, with --cancel."
        raise BadInputError(msg, way_out)
    return mine[0] if mine else None


def _start(context: JobContext, tables: Sequence[str], request: RebuildRequest) -> Rebuild:
    for ended in context.ops.rebuilds.ended_ids(context.spec.table):
        remove_staging(staged_paths(context.paths, ended, tables))
    hashes = _hashes(context, tables)
    return context.ops.rebuilds.start(context.spec.table, tuple(tables), hashes, request, context.args.run_id)


def _hashes(context: JobContext, tables: Sequence[str]) -> tuple[str, ...]:
    return tuple(context.catalog.spec(table).spec_hash for table in tables)


def _tables(context: JobContext, *, downstream: bool) -> tuple[str, ...]:
    """The job's table, and those that read it, in build order."""
    wanted = {context.spec.table}
    for spec in context.catalog.specs.values() if downstream else ():
        wanted |= {spec.table} if wanted & set(spec.source_tables) else set()
    return tuple(table for table in context.catalog.specs if table in wanted)


def _cancelled(context: JobContext, rebuild: Rebuild | None, request: RebuildRequest) -> JobReport:
    if rebuild is None:
        return _report(context, Outcome.NO_OP, "no rebuild is under way", {})
    if context.args.dry_run:
        return _report(context, Outcome.NO_OP, f"would cancel the rebuild {rebuild.id}", {"rebuild": rebuild.id})
    switched = [table for table in rebuild.tables if StagedBuild(context, rebuild, table, RUN).is_switched]
    context.ops.rebuilds.record(RebuildEvent.CANCELLED, rebuild, request, context.args.run_id)
    remove_staging(staged_paths(context.paths, rebuild.id, rebuild.tables))
    stays = f"; {', '.join(switched)} was switched before and stays" if switched else "; readers saw nothing of it"
    return _report(context, Outcome.COMMITTED, f"the rebuild was cancelled{stays}", {"rebuild": rebuild.id})


def _undone(context: JobContext, request: RebuildRequest) -> JobReport:
    """Undo the last rebuild of the job's table and, if the request says so, of the downstream tables rebuilt with it.

    The same request finishes an undoing that was interrupted: tables that are undone already stay as they are.
    """
    together = tables_to_undo(context, _tables(context, downstream=True))
    undone = together if request.downstream else [table for table in together if table == context.spec.table]
    if not undone:
        raise NotReadyError(f"{context.spec.table}: the last rebuild was undone")
    of_table = {table: _of_table(context, table) for table in undone}
    for each in of_table.values():
        _require_no_rebuild(each)
    if context.args.dry_run:
        message = f"would put the rows back that the last rebuild has replaced: {', '.join(undone)}"
        return _report(context, Outcome.NO_OP, message, {"tables": undone})
    switched = {}
    for table, each in of_table.items():
        with each.leases.table(table):
            switched[table] = undo_rebuild(each).version
    lines = [f"{table}: version {version} has the rows of before the rebuild" for table, version in switched.items()]
    if stay := ", ".join(table for table in together if table not in undone):
        lines.append(f"still as rebuilt: {stay}; --undo --downstream undoes these as well")
    lines.append("What has come since the rebuild is read again.")
    return _report(context, Outcome.COMMITTED, "\n".join(lines), {"tables": switched})


def _require_no_rebuild(context: JobContext) -> None:
    if rebuild := _under_way(context):
        msg = f"{context.spec.table}: is being built anew"
        raise BadInputError(msg, f"Give that up first: lakehouse rebuild {rebuild.table} --cancel")


def _of_table(context: JobContext, table: str, **more: Any) -> JobContext:
    """Return the job's context for another table of the rebuild."""
    args = context.args.model_copy(update={"table": table, **more})
    return JobContext(args, context.is_to_stop, context.ops, settings=context.settings)


def _plan(context: JobContext, tables: Sequence[str], rebuild: Rebuild | None) -> str:
    rows = {table: table_rows(path := context.paths.table(table), latest_version(path)) for table in tables}
    named = ", ".join(f"{table} ({number:,} rows now)" for table, number in rows.items())
    return f"would {'go on to build' if rebuild else 'build'} {named} anew. Nothing was written: it is a dry run."


def _said(context: JobContext, winners: Sequence[Winner]) -> str:
    told = []
    for winner in winners:
        table, version = winner.intent.table, winner.version
        path = context.paths.table(table)
        kept = context.now() + min(retention_of(context.catalog.spec(table)), timedelta(days=36500))
        before, after = table_rows(path, version - 1), table_rows(path, version)
        told.append(
            f"{table} was built anew: version {version} has {after:,} rows, in the place of {before:,}. What was there "
            f"can be read as version {version - 1} until {kept:%Y-%m-%d}"
        )
    return "\n".join(told)


def _gone_message(table: str, gone: Sequence[str]) -> str:
    shown = "\n".join(f"  {path}" for path in gone[:20])
    more = f"\n  and {len(gone) - 20} more" if len(gone) > 20 else ""
    return (
        f"{table}: {len(gone)} landing files that the table has loaded cannot be loaded again; nothing was switched:\n"
        f"{shown}{more}\nHave them delivered again, or do without their rows: lakehouse rebuild --allow-missing"
    )


def _report(
    context: JobContext, outcome: Outcome, message: str, details: dict[str, Any], gone: Sequence[str] = ()
) -> JobReport:
    path = context.paths.table(context.spec.table)
    notes = (f"{len(gone)} landing files are not there any more, {gone[0]} for one",) if gone else ()
    return JobReport(
        job=Job.TABLE_REBUILD.value,
        table=context.spec.table,
        outcome=outcome,
        message=message if message.startswith(context.spec.table) else f"{context.spec.table}: {message}",
        interval=context.args.interval,
        run_id=context.args.run_id,
        version=latest_version(path) if is_table(path) else None,
        certified_version=context.ops.gates.certified(context.spec.table),
        details=details,
        notes=notes,
    )


if __name__ == "__main__":
    main(Job.TABLE_REBUILD, run)

"""What the jobs of the quarantine share: the layer of the table, the requested rows, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from millrace.contracts.counted import counted
from millrace.contracts.job.args import Job
from millrace.contracts.job.findings import without_value
from millrace.contracts.job.report import JobReport, reported_run
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.restricted import EVERYTHING_RESTRICTED
from millrace.contracts.spec.table_spec import BronzeSpec, SilverSpec
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.events import Decision
from millrace.errors import BadInputError, MillraceError, Outcome
from millrace_spark.layers.bronze.bronze import BronzeIngest
from millrace_spark.layers.maintenance.maintenance import require_table
from millrace_spark.layers.own_table import WorkOfStream, ensure_own_table
from millrace_spark.layers.quarantine.fixes import CheckedRow, RowChecker, check_rows, fix_values
from millrace_spark.layers.quarantine.replays import pending_rows
from millrace_spark.layers.received_rows import MAX_ROWS
from millrace_spark.layers.silver.replays import SilverReplays
from millrace_spark.layers.silver.silver import merges_of
from millrace_spark.layers.silver.tables import silver_shape
from millrace_spark.layers.stream_batches import finish_table
from millrace_spark.runtime.context import JobContext

MAX_SHOWN = 20
"""How many rows a report lists."""


def request_of(context: JobContext) -> QuarantineRequest:
    """Return the job's request.

    Raises:
        MillraceError: the job has none.
    """
    if context.args.request is None:
        raise MillraceError(f"{context.args.table}: the job needs --request, which names the quarantined rows")
    return QuarantineRequest.load(context.args.request)


def layer_of(context: JobContext) -> tuple[WorkOfStream, RowChecker]:
    """Return what writes the batches of each stream of the job's table, and the checker of its received rows.

    Raises:
        NotReadyError: there is no table yet.
        BadInputError: the table on disk does not fit the spec, or it is computed from its sources, and refuses no rows.
    """
    spec = context.spec
    require_table(context)
    if isinstance(spec, BronzeSpec):
        ingest = BronzeIngest(context, spec)
        ingest.ensure_table()
        return lambda _: ingest, ingest
    if isinstance(spec, SilverSpec):
        merge_of = merges_of(context)
        ensure_own_table(context, silver_shape(spec))
        return merge_of, SilverReplays(context, spec)
    raise BadInputError(f"{spec.table} refuses no row: it is computed from its sources, fix the rows there")


def fix_rows(
    context: JobContext, work_of: WorkOfStream, layer: RowChecker, request: QuarantineRequest
) -> list[CheckedRow]:
    """Fix the requested rows, if the request has a fix, and check them by the table's rules.

    A dry run writes nothing. Otherwise the rows that a dead driver has refused are requested rows too.

    Args:
        context: the job's.
        work_of: closes a batch whose writer died.
        layer: the checker of the table's received rows.
        request: which rows, and the fix.

    Raises:
        BadInputError: the fix cannot be computed.
    """
    if not context.args.dry_run:
        finish_table(context, work_of)
    rows = pending_rows(context, request)
    if not rows:
        return []
    checked: list[CheckedRow] = []
    with context.open_session({}) as session:
        for at in range(0, len(rows), MAX_ROWS):
            some = rows[at : at + MAX_ROWS]
            # An attempt of the run may have fixed rows before it died: an expression is not applied to them twice.
            to_fix = [row for row in some if request.edited or (request.has_fixes and row.fix != request.how)]
            received = context.restricted_received
            new = {row.id: row for row in fix_values(session, layer, to_fix, request, received)} if to_fix else {}
            checked += check_rows(session, layer, [new.get(row.id, row.received_row) for row in some])
    before = {row.id: row.received_row for row in rows}
    kept = [result.row for result in checked if not result.is_erased]
    fixed = [row for row in kept if row != before[row.id]]
    if not context.args.dry_run:
        decision = Decision(request.said_by, request.why, context.args.run_id)
        target = table_id(context.paths.table(context.spec.table))
        context.ops.quarantine.record_fixes(context.spec.table, target, fixed, decision)
    return checked


def check_report(context: JobContext, job: Job, request: QuarantineRequest, rows: Sequence[CheckedRow]) -> JobReport:
    """Return the report on rows that were fixed or checked, but not replayed."""
    counts = Counter(row.outcome for row in rows)
    done = f"{counted(len(rows), 'row')} {'fixed' if request.has_fixes else 'checked'}"
    would = (
        f"{counted(counts['applied'], 'passes', 'pass')} all rules now, "
        f"{counted(counts['quarantined'], 'stays', 'stay')} refused, {counts['dropped']} would be dropped"
    )
    waits = f" They wait for: lakehouse quarantine replay {context.spec.table} --status fixed"
    after = " Nothing was written: it is a dry run." if context.args.dry_run else waits if request.has_fixes else ""
    no_rows = "no row that waits in quarantine is meant: lakehouse quarantine list"
    written = request.has_fixes and not context.args.dry_run and bool(rows)
    shown = [_shown(context, row) for row in rows if not row.is_erased][:MAX_SHOWN]
    outcome = Outcome.COMMITTED if written else Outcome.NO_OP
    message = f"{context.spec.table}: " + (f"{done}: {would}.{after}" if rows else no_rows)
    details = {"rows": shown, **counts}
    return JobReport(**reported_run(job, context.args), outcome=outcome, message=message, details=details)


def _shown(context: JobContext, checked: CheckedRow) -> dict[str, Any]:
    """Return a row as a report has it: without restricted values, which a fix may have copied to any column."""
    show, received, row = context.restricted(context.spec.table).shown_reason, context.restricted_received, checked.row
    if row.fix and received:
        show, received = without_value, EVERYTHING_RESTRICTED
    reasons = list(map(show, checked.reasons))
    return {"id": row.id, "fate": checked.outcome, "reasons": reasons, "received": received.shown_record(row.received)}

"""What the jobs of the quarantine have in common: the layer of the table, the rows that are meant, the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.job.args import Job
from include.contracts.job.quarantine_request import QuarantineRequest
from include.contracts.job.report import JobReport
from include.contracts.spec.table_spec import BronzeSpec, SilverSpec
from include.control.ledger.resolution import table_id
from include.control.quarantine.events import Said
from include.control.quarantine.rows import QuarantinedRow
from include.errors import BadInputError, MillraceError, Outcome
from spark_jobs.layers.bronze.bronze import BronzeIngest
from spark_jobs.layers.bronze.kafka_records import KafkaRecords
from spark_jobs.layers.bronze.landing_records import LandingRecords
from spark_jobs.layers.maintenance.maintenance import require_table
from spark_jobs.layers.own_table import ensure_own_table
from spark_jobs.layers.quarantine.fixes import Tried, mended, tried
from spark_jobs.layers.quarantine.replays import MOST_ROWS, pending_rows
from spark_jobs.layers.received_rows import ReceivesRows
from spark_jobs.layers.silver.replays import SilverReplays
from spark_jobs.layers.silver.silver import SilverMerge
from spark_jobs.layers.silver.tables import silver_shape
from spark_jobs.protocol.batches import BatchWork
from spark_jobs.runtime.context import JobContext

MOST_SHOWN = 20
"""Rows that a report tells of one by one."""


def request_of(context: JobContext) -> QuarantineRequest:
    """What the job is asked for.

    Raises:
        MillraceError: it was not told.
    """
    if context.args.request is None:
        raise MillraceError(f"{context.args.table}: the job was not told which quarantined rows are meant (--request)")
    return QuarantineRequest.load(context.args.request)


def layer_of(context: JobContext) -> tuple[BatchWork, ReceivesRows]:
    """What writes the batches of the job's table, which fits its spec; and what knows its rows as they are received.

    Raises:
        NotReadyError: there is no table yet.
        BadInputError: the table on disk does not fit the spec, or it is one of gold, which refuses no row.
    """
    spec = context.spec
    require_table(context)
    if isinstance(spec, BronzeSpec):
        ingest = BronzeIngest(context, spec, (KafkaRecords if spec.reads_kafka else LandingRecords)(context, spec))
        ingest.ensure_table()
        return ingest, ingest
    if isinstance(spec, SilverSpec):
        ensure_own_table(context, silver_shape(spec))
        return SilverMerge(context), SilverReplays(context, spec)
    raise BadInputError(f"{spec.table} refuses no row: gold is worked out of silver, mend the rows there")


def fix_rows(context: JobContext, layer: ReceivesRows, request: QuarantineRequest) -> list[Tried]:
    """Mend the rows that are meant, if the request mends any, and say what the rules make of them.

    A dry run writes nothing.

    Raises:
        BadInputError: the fix cannot be worked out.
    """
    rows = pending_rows(context, request)
    if not rows:
        return []
    found: list[Tried] = []
    with context.open_session({}) as session:
        for at in range(0, len(rows), MOST_ROWS):
            found += _tried(session, layer, rows[at : at + MOST_ROWS], request)
    known = {row.id: row.to_try for row in rows}
    new = [one.row for one in found if one.row != known[one.row.id]]
    if not context.args.dry_run:
        said = Said(request.said_by, request.why, context.args.run_id)
        target = table_id(context.paths.table(context.spec.table))
        context.records.quarantine.record_fixed(context.spec.table, target, new, said)
    return found


def _tried(
    session: SparkSession, layer: ReceivesRows, rows: Sequence[QuarantinedRow], request: QuarantineRequest
) -> list[Tried]:
    # The run may have died after this: what an expression has mended is not mended by it once more.
    to_mend = [row for row in rows if request.edited or (request.has_fixes and row.fix != request.how)]
    new = {row.id: row for row in mended(session, layer, to_mend, request)} if to_mend else {}
    return tried(session, layer, [new.get(row.id, row.to_try) for row in rows])


def verdict_report(context: JobContext, job: Job, request: QuarantineRequest, found: Sequence[Tried]) -> JobReport:
    """What the rules say of rows that were not replayed: mended only, or looked at by a dry run."""
    fates = Counter(one.fate for one in found)
    passing = fates["applied"]
    done = f"{len(found)} rows {'mended' if request.has_fixes else 'looked at'}"
    would = f"{passing} pass all rules now, {fates['quarantined']} stay refused, {fates['dropped']} would be dropped"
    kept = " Nothing was written: it is a dry run." if context.args.dry_run else ""
    written = request.has_fixes and not context.args.dry_run and bool(found)
    return JobReport(
        job=job.value,
        table=context.spec.table,
        outcome=Outcome.COMMITTED if written else Outcome.NO_OP,
        message=f"{context.spec.table}: {done}: {would}.{kept}" if found else _nothing(context),
        interval=context.args.interval,
        run_id=context.args.run_id,
        details={"rows": [_shown(one) for one in found[:MOST_SHOWN]], **fates},
    )


def _nothing(context: JobContext) -> str:
    return f"{context.spec.table}: no row that waits in quarantine is meant: lakehouse quarantine list"


def _shown(one: Tried) -> dict[str, Any]:
    return {"id": one.row.id, "fate": one.fate, "reasons": list(one.reasons), "received": one.row.received}

"""Restore a table whose newest version its gate refused, if the spec says `on_refusal: restore`."""

from __future__ import annotations

import logging

from include.control.gates.restore import undo_refused
from include.control.gates.result import GateResult
from include.errors import RestoreError
from spark_jobs.runtime.context import JobContext

log = logging.getLogger(__name__)


def restore_certified_rows(context: JobContext, refused: GateResult) -> str:
    """Commit the certified rows on top of the refused version; return one line that says so, or why this failed.

    The line is empty, and nothing is committed, if the spec keeps refused versions.
    """
    spec = context.spec
    if spec.on_refusal == "keep":
        return ""
    args, ops = context.args, context.ops
    try:
        with context.leases.table(spec.table):
            winner = undo_refused(refused, spec, args.interval, args.run_id, context.paths, ops.ledger, ops.gates)
    except RestoreError as error:
        log.warning("%s", error)
        return f"{error}."
    return (
        f"The table was restored: version {winner.version} has the rows of version {winner.intent.sources.restores}. "
        "The next run reads the refused batches again."
    )

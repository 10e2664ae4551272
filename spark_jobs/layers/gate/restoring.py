"""What a job does about a version that its gate refused, where the spec says `on_refusal: restore`."""

from __future__ import annotations

import logging

from include.control.gates.restore import Restore
from include.control.gates.result import GateResult
from include.errors import RestoreError
from spark_jobs.runtime.context import JobContext

log = logging.getLogger(__name__)


def take_back(context: JobContext, refused: GateResult) -> str:
    """Put the certified rows back on top of the refused version; one line on what was done, or on why it was not.

    Nothing is done, and said, where the spec keeps what was refused.
    """
    spec = context.spec
    if spec.on_refusal == "keep":
        return ""
    restore = Restore(
        spec, context.args.interval, context.args.run_id, context.paths, context.records.ledger, context.records.gates
    )
    try:
        with context.leases.table(spec.table):
            winner = restore.run(refused)
    except RestoreError as error:
        log.warning("%s", error)
        return f"{error}."
    return (
        f"Its rows were taken back: version {winner.version} has those of version {winner.intent.sources.restores}. "
        "The next run reads again what was taken back."
    )

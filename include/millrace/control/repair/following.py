"""Whether a silver table follows a restore of its source, or a deletion, by its next run, or has to be rebuilt."""

from __future__ import annotations

from collections.abc import Iterable

from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.log.batch import Winner
from millrace.control.ops_tables import OpsTables
from millrace.errors import BadInputError


def why_rebuild(spec: SilverSpec, batches: Iterable[Winner]) -> str:
    """Return why a silver table cannot unread batches of its source; empty if its next run does.

    The next run computes the keys of undone rows again from all remaining rows of the source, as after a landing file
    that was replaced (ADR 11).
    """
    for batch in batches:
        sources = batch.intent.sources
        if spec.snapshot:
            return why_snapshots_stay(spec)
        if sources.deletes:
            return f"batch {batch.batch_seq} of its source is a deletion, whose rows are there again"
        if sources.replay:
            return f"batch {batch.batch_seq} of its source is a replay of quarantined rows"
        if sources.offsets:
            return f"batch {batch.batch_seq} of its source has Kafka messages, whose refused rows would stay"
    return ""


def why_snapshots_stay(spec: SilverSpec) -> str:
    """Return why a silver table cannot follow the loss of some rows of its source; empty if its next run does."""
    return "it reads full snapshots, each of which replaces the one before" if spec.snapshot else ""


def require_followable(
    spec: SilverSpec, source: str, source_id: str, span: tuple[int | None, int], ops: OpsTables
) -> None:
    """Require that a run follows the restores and the deletions of a source in versions (after, upto] of it.

    Raises:
        BadInputError: only a rebuild does.
    """
    after, upto = span
    if after is None or after == upto:
        return
    batches = ops.ledger.batches(source, source_id, after, upto)
    what, reason = "", ""
    # An erasure deletes the rows of each table by their keys, so that no table is left with them.
    if any(batch.intent.sources.deletes and not batch.intent.sources.erases for batch in batches):
        what, reason = "has lost rows by a deletion", why_snapshots_stay(spec)
    if not reason and any(batch.intent.sources.restores is not None for batch in batches):
        undone, redone = ops.ledger.rewound(source, source_id, after, upto)
        of_restores = [*undone, *(batch for batch in redone if batch.version <= after)]
        what, reason = "was restored", why_rebuild(spec, of_restores)
    if reason:
        raise BadInputError(
            f"{spec.table}: {source} {what}, and a run cannot follow that: {reason}",
            f"lakehouse rebuild {spec.table} --downstream",
        )

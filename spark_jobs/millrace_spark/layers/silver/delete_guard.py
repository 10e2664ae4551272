"""Stop a silver batch before its commit if it would delete more absent keys than its spec allows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from millrace.contracts.job.findings import AbsentKeys
from millrace.contracts.spec.table_spec import SilverSpec
from millrace.control.ledger.deletes import Deletes, are_allowed, are_too_many, refusal_message
from millrace.control.log.batch import BatchSources, Intent
from millrace.errors import DeletesRefusedError
from millrace_spark.runtime.context import JobContext


def require_allowed(
    context: JobContext, spec: SilverSpec, source: str, intent: Intent, absent: Sequence[AbsentKeys]
) -> None:
    """Check that the batch may delete its absent keys, which are absent because of `source`.

    Raises:
        DeletesRefusedError: there are too many, and no person has allowed it; the question is in `ops.deletes`.
    """
    if not absent:
        return
    records = context.ops.deletes
    upto, start = intent.sources.ranges[source][1], intent.interval_start
    all_deletes = [deletes_of(spec, source, intent.table_id, intent.sources, keys, start, upto) for keys in absent]
    allowed = records.allowed_deletes(spec.table, intent.table_id, intent.sources.source_ids[source])
    for deletes, keys in zip(all_deletes, absent, strict=True):
        allowed_now = context.allows_deletes(keys.interval_start if spec.snapshot else None)
        if allowed_now and not _is_allowed(deletes, allowed, context, spec):
            approval = {"said_by": context.args.allow_deletes, "reason": "--allow-deletes", "run_id": intent.run_id}
            records.record_allowed(deletes, **approval)
            allowed.append(deletes)
    for deletes in all_deletes:
        too_many = are_too_many(deletes.keys, deletes.of_keys, spec.max_deleted_percent)
        if too_many and not _is_allowed(deletes, allowed, context, spec):
            records.record_asked(deletes, intent.run_id)
            raise DeletesRefusedError(refusal_message(deletes, spec.max_deleted_percent))


def deletes_of(
    spec: SilverSpec,
    source: str,
    table_id: str,
    sources: BatchSources,
    absent: AbsentKeys,
    interval_start: datetime,
    version: int,
) -> Deletes:
    """Return the deletes of absent keys; `version` is the version of the source up to which the batch reads."""
    return Deletes(
        table=spec.table,
        table_id=table_id,
        interval_start=absent.interval_start or interval_start,
        source=source,
        source_id=sources.source_ids[source],
        source_version=version,
        keys=absent.keys,
        of_keys=absent.of_keys,
        samples=absent.samples,
        why=absent.why,
    )


def _is_allowed(deletes: Deletes, allowed: Sequence[Deletes], context: JobContext, spec: SilverSpec) -> bool:
    upto = deletes.source_version
    if not allowed or not spec.snapshot:
        return are_allowed(allowed, deletes.keys, upto, upto)
    batches = context.ops.ledger.batches_of(deletes.source, deletes.source_id, [deletes.interval_start])
    since = max((batch.version for batch in batches if batch.version <= upto), default=upto)
    return are_allowed(allowed, deletes.keys, since, upto, deletes.interval_start)

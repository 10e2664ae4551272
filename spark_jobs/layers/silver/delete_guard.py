"""Stops a silver batch before its commit, where more keys would go by absence than the spec lets go unasked."""

from __future__ import annotations

from collections.abc import Sequence

from include.contracts.job.findings import AbsentKeys
from include.contracts.spec.table_spec import SilverSpec
from include.control.ledger.deletes import Deletes, are_allowed, are_too_many, refusal
from include.control.log.batch import Intent
from include.errors import DeletesRefusedError
from spark_jobs.runtime.context import JobContext


def require_allowed(context: JobContext, spec: SilverSpec, intent: Intent, absent: Sequence[AbsentKeys]) -> None:
    """Require that the keys which a batch finds absent may be deleted.

    Raises:
        DeletesRefusedError: they are too many, and nobody has allowed it; `ops.deletes` has the question.
    """
    records = context.records.deletes
    told = [_deletes(spec, intent, one) for one in absent]
    known = records.allowed(spec.table, intent.table_id, intent.sources.source_ids[spec.source])
    for one, keys in zip(told, absent, strict=True):
        allowed_now = context.lets_deletes_go(keys.interval_start if spec.snapshot else None)
        if allowed_now and not _is_allowed(one, known, context, spec):
            said = {"said_by": context.args.allow_deletes, "reason": "--allow-deletes", "run_id": intent.run_id}
            records.record_allowed(one, **said)
            known.append(one)
    too_many = [one for one in told if are_too_many(one.keys, one.of_keys, spec.max_deleted_percent)]
    refused = [one for one in too_many if not _is_allowed(one, known, context, spec)]
    if refused:
        records.record_asked(refused[0], intent.run_id)
        raise DeletesRefusedError(refusal(refused[0], spec.max_deleted_percent))


def _deletes(spec: SilverSpec, intent: Intent, absent: AbsentKeys) -> Deletes:
    return Deletes(
        table=spec.table,
        table_id=intent.table_id,
        interval_start=absent.interval_start or intent.interval_start,
        source=spec.source,
        source_id=intent.sources.source_ids[spec.source],
        source_version=intent.sources.ranges[spec.source][1],
        keys=absent.keys,
        of_keys=absent.of_keys,
        samples=absent.samples,
        why=absent.why,
    )


def _is_allowed(wanted: Deletes, known: Sequence[Deletes], context: JobContext, spec: SilverSpec) -> bool:
    upto = wanted.source_version
    if not known or not spec.snapshot:
        return are_allowed(known, wanted.keys, upto, upto)
    batches = context.records.ledger.batches_of(wanted.source, wanted.source_id, [wanted.interval_start])
    since = max((one.version for one in batches if one.version <= upto), default=upto)
    return are_allowed(known, wanted.keys, since, upto, wanted.interval_start)

"""Whether everything that belongs to a batch was done, and what a replay has to do if it was not.

A gate certifies no batch whose secondary writes or row counts are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import Winner, winner_of
from millrace.control.log.delta_log import remaining_commits
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_positions
from millrace.control.quarantine.stored_rows import QuarantinedRow
from millrace.control.repair.restoring import restore_obstacle
from millrace.paths import LakehousePaths


def is_complete(spec: AnySpec, last: Winner, ops: OpsTables) -> bool:
    """Whether a batch has its secondary writes and its gate result, and its rows are restored if the spec says so."""
    if not ops.ledger.closed_rows(last):
        return False
    if last.intent.sources.restores is not None and last.intent.sources.repair is None:
        return True  # the gate has checked these rows in the version that was restored
    verdicts = ops.gates.verdicts(spec.table)
    later = (passed for passed in (verdicts.passed if verdicts else ()) if passed.version > last.version)
    if any(passed.suite_hash == spec.suite_hash for passed in later):
        return True  # The newest batch is of another stream. No event is read for this one.
    result = ops.gates.result_from(verdicts, spec.table, last.version, spec.suite_hash)
    if result is None or result.passed or spec.on_refusal == "keep":
        return result is not None
    return bool(restore_obstacle(result, ops.paths, ops.gates))


def replay_interval(spec: AnySpec, rows: Sequence[QuarantinedRow], paths: LakehousePaths) -> Interval | None:
    """Return the interval of the batch that replays the rows; a rule of freshness measures their age at its end.

    With rows, it is the newest interval that delivered some of them. Without rows, it is that of the last batch if a
    dead driver left that batch incomplete, and otherwise None: there is nothing to do.
    """
    ops = OpsTables(paths)
    if rows:
        starts = {row.interval_start for row in rows}
        loads = ops.ledger.batches_of(spec.table, table_id(paths.table(spec.table)), starts)
        of_start = {start: Interval(start=start, end=start + timedelta(days=1)) for start in starts}
        of_start |= {load.intent.interval_start: load.intent.interval for load in loads}
        return max(of_start.values(), key=lambda interval: interval.end)
    for last in filter(None, (position.last for position in stream_positions(spec, paths, ops.ledger))):
        if not is_complete(spec, last, ops):
            return last.intent.interval
    return None


def unclosed_batches(table: str, version: int, paths: LakehousePaths, ledger: Ledger, gates: Gates) -> list[Winner]:
    """Return the batches of all streams after the last passed version, up to `version`, that nobody has closed yet.

    The certified version may be a later one with the same rows: of a batch all of whose rows were refused.
    """
    verdicts = gates.verdicts(table)
    commits = remaining_commits(paths.table(table), verdicts.same[0] if verdicts and verdicts.same else None)
    batches = (winner_of(commit, app_id) for commit in commits if commit.version <= version for app_id in commit.txns)
    return [batch for batch in batches if batch and ledger.closed_rows(batch) is None]

"""The batches that a gate may not certify yet: their secondary writes or row counts are missing."""

from __future__ import annotations

from millrace.control.gates.gates import Gates
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import Winner, winner_of
from millrace.control.log.delta_log import remaining_commits
from millrace.paths import LakehousePaths


def unclosed_batches(table: str, version: int, paths: LakehousePaths, ledger: Ledger, gates: Gates) -> list[Winner]:
    """Return the batches of all streams after the last passed version, up to `version`, that nobody has closed yet.

    The certified version may be a later one with the same rows: of a batch all of whose rows were refused.
    """
    verdicts = gates.verdicts(table)
    commits = remaining_commits(paths.table(table), verdicts.same[0] if verdicts and verdicts.same else None)
    batches = (winner_of(commit, app_id) for commit in commits if commit.version <= version for app_id in commit.txns)
    return [batch for batch in batches if batch and ledger.closed_rows(batch) is None]

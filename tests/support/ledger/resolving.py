"""Commits of one table, and a ledger that is lost afterwards."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from include.control.ledger.ledger import Ledger
from include.control.log.batch import Stream, Winner, new_token
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import FLIGHTS, commit, intent_of


def id_of(table: Path) -> str:
    """Return Delta's id of the table."""
    return str(DeltaTable(str(table)).metadata().id)


def commit_next(table: Path, batch_seq: int, stream: Stream = FLIGHTS) -> Winner:
    """Commit a batch of the stream."""
    return commit(table, intent_of(id_of(table), batch_seq, stream=stream))


def lose_ledger(root: Path) -> Ledger:
    """Return an empty ledger, as after the loss of its folders of history and state."""
    for folder in (root / "ops", LakehousePaths(root).state):
        if folder.exists():
            folder.rename(root / f"lost-{new_token()}")
    return Ledger(LakehousePaths(root))

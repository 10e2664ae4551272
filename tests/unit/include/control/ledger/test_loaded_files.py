"""The contents that a table has loaded, for readers that keep a ledger open while it is compacted."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.contracts.job.report import FileRows, RowCounts
from include.control.ledger import ops_table
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream, Winner
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import intent_of
from tests.support.ledger.ledger_reading import loaded_contents

ORDERS = Stream("bronze.orders")


def test_a_compaction_changes_nothing_for_earlier_readers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ops_table, "FILES_WORTH_COMPACTING", 5)
    paths = LakehousePaths(tmp_path)
    ledger, others = Ledger(paths), Ledger(paths)
    for seq in range(1, 7):
        load(others, seq, [FileFact("again", seq, seq, f"sum {seq}"), FileFact(f"{seq}", 1, seq, "one")])
        assert ledger.loaded_files(ORDERS.table, "id").holds(FileFact("again", seq, seq, f"sum {seq}"), only_last=True)
    assert len(DeltaTable(str(paths.ops("files"))).file_uris()) < 6, "the ledger was compacted"
    contents = loaded_contents(others, ORDERS.table, "id")
    assert len(contents) == 12
    last = {file.path: file for file in contents}
    for reader in (ledger, others, Ledger(paths)):
        loaded = reader.loaded_files(ORDERS.table, "id")
        assert loaded.last_of([*last, "new"]) == last
        assert all(loaded.holds(file, only_last=False) for file in contents)


def load(ledger: Ledger, seq: int, files: list[FileFact]) -> None:
    """Record a complete batch of the files."""
    winner = Winner(intent_of("id", seq, stream=ORDERS), seq)
    ledger.record_intent(winner.intent, files)
    ledger.record_committed([winner])
    ledger.record_closed(winner, RowCounts(), {file.path: FileRows(read=1, written=1) for file in files})

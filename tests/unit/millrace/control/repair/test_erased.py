"""Whether somebody was erased since a version, by the log of the table."""

from __future__ import annotations

from pathlib import Path

from millrace.control.log.batch import ERASURE, BatchSources
from millrace.control.repair.erased import ErasedSince, last_erasure
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import load_batch


def test_the_last_erasure_after_a_version_is_found_and_no_other_deletion(tmp_path: Path) -> None:
    path, spec = tmp_path / "bronze/orders", bronze_spec()
    deletes = ("", f"{ERASURE}DSR-1", "amount < 0", f"{ERASURE}DSR-2", "")
    first, one, _, two, _ = (load_batch(tmp_path, spec, sources=BatchSources(deletes=each)).version for each in deletes)
    assert last_erasure(path, first) == last_erasure(path, one) == ErasedSince("erasure DSR-2", two)
    assert last_erasure(path, two) is None

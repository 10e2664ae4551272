"""Restores after refusals on small Delta tables, compared with a model of what readers see."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from include.control.gates.gates import Gates
from include.control.gates.restore import restore_obstacle, restoring_version, undo_refused
from include.control.gates.result import GateResult
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import resolve
from include.control.log.batch import BatchSources, Stream, Winner
from include.control.log.delta_log import latest_version
from include.errors import RestoreError
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import append, clean_log, create_table, day, judge, load_batch, optimize

SPEC = silver_spec(on_refusal="restore")
SOURCE, TABLE = "bronze.orders", SPEC.table


def restore(root: Path) -> Winner:
    """Undo the newest refused version."""
    paths = LakehousePaths(root)
    return undo_refused(refusal(root), SPEC, day(), "run of the restore", paths, Ledger(paths), Gates(paths))


def refusal(root: Path) -> GateResult:
    return [recorded.result for recorded in Gates(LakehousePaths(root)).results(TABLE) if not recorded.result.passed][
        -1
    ]


class Restores(RuleBasedStateMachine):
    """Batches read a source to its end, pass their gate or are refused, and refused ones are undone or not.

    Model: the last source version that the table has read (`read`) and that readers see (`seen`), and whether the
    newest version is refused. A row of the table stands for a version of the source.
    """

    @initialize()
    def build(self) -> None:
        self.root = Path(tempfile.mkdtemp())
        self.paths = LakehousePaths(self.root)
        self.path = self.paths.table(TABLE)
        self.arrived = self.read = self.seen = 0
        self.is_refused = self.is_dirty = False
        self.batch(rows=1, passes=True)

    @rule(rows=st.integers(1, 3), passes=st.booleans())
    def batch(self, rows: int, passes: bool) -> None:
        """Load everything that was not read yet, and record the result of the gate."""
        self.arrived += rows
        after = self._position()
        sources = BatchSources(ranges={SOURCE: (after, self.arrived)}, source_ids={SOURCE: "source"})
        winner = load_batch(self.root, SPEC, rows=self.arrived - (after or 0), sources=sources)
        judge(self.root, SPEC, winner.version, passed=passes)
        self.read, self.is_refused, self.is_dirty = self.arrived, not passes, False
        if passes:
            self.seen = self.read

    @rule()
    def optimize(self) -> None:
        """Commit a version that changes no row, but is newer than the checked version."""
        if len(DeltaTable(str(self.path)).file_uris()) > 1:
            optimize(self.path)
            self.is_dirty = self.is_refused

    @precondition(lambda self: self.is_refused and not self.is_dirty)
    @rule()
    def undo(self) -> None:
        refused = latest_version(self.path)
        winner = restore(self.root)
        assert (winner.version, restoring_version(self.path, refused)) == (refused + 1, refused + 1)
        self.read, self.is_refused = self.seen, False

    @precondition(lambda self: self.is_refused and self.is_dirty)
    @rule()
    def undo_too_late(self) -> None:
        before = latest_version(self.path)
        with pytest.raises(RestoreError, match="came after it"):
            restore(self.root)
        assert latest_version(self.path) == before

    @invariant()
    def nothing_is_lost_or_doubled(self) -> None:
        certified = Gates(self.paths).certified(TABLE)
        assert certified is not None
        assert DeltaTable(str(self.path), version=certified).to_pyarrow_table().num_rows == self.seen
        assert DeltaTable(str(self.path)).to_pyarrow_table().num_rows == self.read
        assert self._position() == self.read

    def _position(self) -> int | None:
        if latest_version(self.path) < 0:
            return None
        last = resolve(self.path, Stream(TABLE), Ledger(self.paths)).last
        return last.intent.sources.consumed_version(SOURCE, "source") if last else None

    def teardown(self) -> None:
        if hasattr(self, "root"):
            shutil.rmtree(self.root)


test_any_order_of_refusals_and_restores_agrees_with_the_model = Restores.TestCase
Restores.TestCase.settings = settings(max_examples=4, stateful_step_count=10)


def test_a_refused_version_that_cannot_be_undone_stays_and_the_obstacle_is_named(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)

    def load(*, passes: bool, sources: BatchSources | None = None) -> int:
        version = load_batch(tmp_path, SPEC, sources=sources).version
        judge(tmp_path, SPEC, version, passed=passes)
        return version

    def obstacle() -> str:
        return restore_obstacle(refusal(tmp_path), paths, Gates(paths))

    load(passes=False)
    with pytest.raises(RestoreError, match="no version of the table was ever certified"):
        restore(tmp_path)
    certified = load(passes=True)
    load(passes=False, sources=BatchSources(replay="r1", replayed_rows=1))
    assert obstacle().startswith("batch 3 is a replay of quarantined rows")
    refused = load(passes=False)
    clean_log(paths.table(TABLE), below=refused)
    assert f"lacks commits after version {certified}" in obstacle()
    newer = load_batch(tmp_path, SPEC).version
    assert obstacle() == f"version {newer} came after it"
    judge(tmp_path, SPEC, newer)
    assert obstacle().startswith(f"readers use version {newer}")


def test_several_refused_batches_and_their_quarantined_rows_are_undone_together(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    judge(tmp_path, SPEC, load_batch(tmp_path, SPEC, rows=2).version)
    undone = [load_batch(tmp_path, SPEC, rows=rows) for rows in (3, 4)]
    judge(tmp_path, SPEC, undone[-1].version, passed=False)
    secondary = paths.quarantine(TABLE)
    kept, gone = (load_secondary(secondary, token) for token in ("kept", undone[0].token))
    winner = restore(tmp_path)
    assert winner.intent.sources.undoes == tuple(batch.token for batch in undone)
    assert DeltaTable(str(paths.table(TABLE))).to_pyarrow_table().num_rows == 2
    assert DeltaTable(str(secondary)).to_pyarrow_table().num_rows == kept
    assert gone == 1
    app_id = f"millrace/silver_quarantine.orders/{winner.intent.table_id}/main"
    assert DeltaTable(str(secondary)).transaction_version(app_id) == winner.batch_seq
    rows = Ledger(paths).closed_rows(winner)
    assert rows is not None
    assert (rows.read, rows.inserted, rows.deleted) == (0, 0, 7)


def load_secondary(path: Path, token: str) -> int:
    """Commit one row to a secondary table for the batch with this token, and return the number of rows."""
    if latest_version(path) < 0:
        create_table(path)
    append(path, 1, user_metadata=f'{{"millrace": {{"token": "{token}"}}}}')
    return 1

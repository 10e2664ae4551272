"""How a table differs from its spec, from its ledger and its log: what nobody wrote down is not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.changes.table_diff import TableDiff, diff_for_run, table_diff
from include.control.ledger import spec_history
from include.control.ledger.ledger import Ledger
from include.control.ledger.spec_history import document_of
from include.control.ops_tables import OpsTables
from include.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_document, gold_spec, silver_document, silver_spec
from tests.support.ledger.delta_tables import load_batch

GOLD = gold_spec()
MORE_MEASURES = {**gold_document()["measures"], "most": "max(o.amount)"}
MORE = gold_spec(measures=MORE_MEASURES)


def test_the_spec_of_the_last_batch_is_compared_and_a_new_measure_needs_a_run(tmp_path: Path) -> None:
    ops = OpsTables(LakehousePaths(tmp_path))
    assert table_diff(GOLD, None, ops) == TableDiff(GOLD.table), "a table without a batch has no difference"
    last = load_batch(tmp_path, GOLD, rows=7)
    assert table_diff(GOLD, last, ops).changes == ()
    assert table_diff(MORE, last, ops).unknown, "its spec was not recorded"
    ops.specs.record(GOLD, last.intent.table_id)
    found = table_diff(MORE, last, ops)
    assert (found.needs_run, found.unknown) == (True, False)
    assert found.lines() == (
        "gold.revenue_daily: applied by the next run: measures.most: a new measure, computed for all groups",
    )
    where = gold_spec(sources={"o": {"table": "silver.orders", "where": "amount > 0"}})
    (line,) = table_diff(where, last, ops).lines()
    assert line.startswith("gold.revenue_daily: recompute: sources: ")
    assert line.endswith(
        "7 rows follow the old spec: lakehouse run --table gold.revenue_daily --reprocess --interval ..."
    )


def test_a_change_that_a_run_without_new_data_applied_is_not_named_again(tmp_path: Path) -> None:
    ops, last = OpsTables(LakehousePaths(tmp_path)), load_batch(tmp_path, GOLD)
    ops.specs.record(GOLD, last.intent.table_id)
    sources = {"o": {"table": "silver.orders", "where": "amount > 0"}}
    changed = gold_spec(sources=sources, description="Revenue", owner="the shop", measures=MORE_MEASURES)
    before, wants = table_diff(changed, last, ops), ("description", "measures.most")
    assert [change.key for change in before.changes if change.needs_run] == [*wants]
    ops.specs.record(changed, last.intent.table_id)  # by a run
    after = table_diff(changed, last, ops)
    assert [change.key for change in after.changes] == ["sources", "measures.most"]
    assert after.computes_all_groups, "no batch has computed it"


def test_a_run_reads_all_batches_only_if_the_last_one_needs_a_recompute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bronze, silver = bronze_spec(), silver_spec()
    load_batch(tmp_path, bronze)
    last, ops = load_batch(tmp_path, silver), OpsTables(LakehousePaths(tmp_path))
    read: list[str] = []
    batches = Ledger.batches
    monkeypatch.setattr(Ledger, "batches", lambda self, table, *of: (read.append(table), batches(self, table, *of))[1])
    column = silver_document()["columns"]["amount"]
    cents = silver_spec(columns={**silver_document()["columns"], "amount": {**column, "from": "amount * 100"}})
    assert diff_for_run(cents, last, ops).unknown
    for spec in (cents, silver):
        ops.specs.record(spec, last.intent.table_id)
    assert [change.effect for change in diff_for_run(silver, last, ops).changes] == []
    assert read == []
    assert diff_for_run(cents, last, ops) == table_diff(cents, last, ops)
    assert read


def test_a_spec_is_recorded_once_and_again_when_it_returns(tmp_path: Path) -> None:
    paths = LakehousePaths(tmp_path)
    last = load_batch(tmp_path, GOLD)
    for spec in (GOLD, GOLD, MORE, GOLD):
        OpsTables(paths).specs.record(spec, last.intent.table_id)
    ops = OpsTables(paths)
    assert set(ops.specs.of(GOLD.table, last.intent.table_id)) == {GOLD.spec_hash, MORE.spec_hash}
    assert len(ops.specs._events.events(GOLD.table)) == 3
    assert ops.specs.of(GOLD.table, "of another table") == {}


def test_a_setting_that_an_upgrade_brings_is_no_change_of_a_spec(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each table would get a note, and each gold table a commit of its properties."""
    last = load_batch(tmp_path, GOLD)
    recorded = document_of(GOLD)
    for settings, new in (
        (recorded, "query"),
        (recorded["sources"]["o"], "lookup"),
        (recorded["maintenance"], "verify"),
    ):
        del settings[new]
    with monkeypatch.context() as patch:
        patch.setattr(spec_history, "document_of", lambda _: recorded)
        OpsTables(LakehousePaths(tmp_path)).specs.record(GOLD, last.intent.table_id)
    ops = OpsTables(LakehousePaths(tmp_path))
    found = table_diff(GOLD, last, ops)
    assert (found.changes, found.unknown) == ((), False)
    assert [change.key for change in table_diff(MORE, last, ops).changes] == ["measures.most"]

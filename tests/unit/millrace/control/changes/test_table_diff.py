"""How a table differs from its spec, by its ledger and its log."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.spec_changes import Effect, SpecChange
from millrace.control.changes.table_diff import TableDiff, diff_for_run, table_diff
from millrace.control.ledger import spec_history
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.spec_history import document_of
from millrace.control.log.batch import Winner
from millrace.control.log.stored_tables import TABLE_ID
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_document, gold_spec, silver_document, silver_spec
from tests.support.ledger.delta_tables import day, load_batch, sources_reading

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()
MORE_MEASURES = {**gold_document()["measures"], "most": "max(o.amount)"}
MORE = gold_spec(measures=MORE_MEASURES)


def store_rows_of(ops: OpsTables, spec: AnySpec, *batches: Winner) -> None:
    """Let the table have one row of each of these batches."""
    rows = [{"n": 1, "_batch_token": each.token, "_interval_start": each.intent.interval_start} for each in batches]
    path = str(ops.paths.table(spec.table))
    write_deltalake(path, pa.Table.from_pylist(rows), mode="overwrite", schema_mode="overwrite")


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
    found = table_diff(where, last, ops)
    assert (found.needs_run, found.computes_all_groups) == (True, True)


def test_a_change_that_a_run_without_new_data_applied_is_not_named_again(tmp_path: Path) -> None:
    ops, last = OpsTables(LakehousePaths(tmp_path)), load_batch(tmp_path, GOLD)
    ops.specs.record(GOLD, last.intent.table_id)
    sources = {"o": {"table": "silver.orders", "where": "amount > 0"}}
    changed = gold_spec(sources=sources, description="Revenue", owner="the shop", measures=MORE_MEASURES)
    before, wants = table_diff(changed, last, ops), ("description", "measures.most")
    assert [change.key for change in before.changes if change.needs_run] == [*wants, "sources"]
    ops.specs.record(changed, last.intent.table_id)  # by a run
    after = table_diff(changed, last, ops)
    assert [change.key for change in after.changes if change.needs_run] == ["measures.most", "sources"]
    assert after.computes_all_groups, "no batch has computed it"


def test_groups_that_an_older_spec_has_computed_are_counted_whatever_the_last_batch_followed(tmp_path: Path) -> None:
    ops, batches = OpsTables(LakehousePaths(tmp_path)), [load_batch(tmp_path, spec) for spec in (GOLD, MORE)]
    for spec in (GOLD, MORE):
        ops.specs.record(spec, batches[0].intent.table_id)
    store_rows_of(ops, GOLD, batches[0], batches[0], batches[1])
    assert table_diff(MORE, batches[1], ops).lines() == (
        "gold.revenue_daily: recompute: rows: an earlier spec has computed them. 2 rows follow the old spec: "
        "lakehouse run --table gold.revenue_daily --reprocess --interval 2013-01-02",
    )


def test_a_reprocess_that_a_restore_has_undone_leaves_its_interval_on_the_old_spec(tmp_path: Path) -> None:
    ops, column = OpsTables(LakehousePaths(tmp_path)), silver_document()["columns"]["amount"]
    cents = silver_spec(columns={**silver_document()["columns"], "amount": {**column, "from": "amount * 100"}})
    for _ in range(2):
        load_batch(tmp_path, BRONZE)
    load_batch(tmp_path, SILVER, sources=sources_reading(tmp_path, bronze__orders=(None, 2)))
    at_end = sources_reading(tmp_path, bronze__orders=(2, 2))
    again = load_batch(tmp_path, cents, sources=at_end.model_copy(update={"reprocess": True}))
    for spec in (SILVER, cents):
        ops.specs.record(spec, again.intent.table_id)
    assert table_diff(cents, again, ops).outdated == (day(1).start,)
    undoing = at_end.model_copy(update={"restores": 1, "undoes": (again.token,)})
    undone = load_batch(tmp_path, SILVER, sources=undoing)
    ops.ledger.record_rewound(undone, [again], [])
    assert table_diff(cents, undone, ops).outdated == (day(1).start, day(2).start)


def test_a_run_reads_all_batches_only_if_the_last_one_needs_a_recompute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load_batch(tmp_path, BRONZE)
    last, ops = load_batch(tmp_path, SILVER), OpsTables(LakehousePaths(tmp_path))
    read: list[str] = []
    batches = Ledger.batches
    monkeypatch.setattr(Ledger, "batches", lambda self, table, *of: (read.append(table), batches(self, table, *of))[1])
    column = silver_document()["columns"]["amount"]
    cents = silver_spec(columns={**silver_document()["columns"], "amount": {**column, "from": "amount * 100"}})
    assert diff_for_run(cents, last, ops).unknown
    for spec in (cents, SILVER):
        ops.specs.record(spec, last.intent.table_id)
    assert [change.effect for change in diff_for_run(SILVER, last, ops).changes] == []
    assert read == []
    assert diff_for_run(cents, last, ops) == table_diff(cents, last, ops)
    assert read


def recorded_by_an_earlier_version(monkeypatch: pytest.MonkeyPatch, root: Path, spec: AnySpec, **more: Any) -> Winner:
    """A batch of a table, and its spec, as Millrace recorded them before it read values exactly."""
    with monkeypatch.context() as earlier:
        earlier.setattr(type(spec), "converted_columns", ())
        last = load_batch(root, spec, **more)
        OpsTables(LakehousePaths(root)).specs.record(spec, last.intent.table_id)
    return last


def test_rows_that_an_earlier_version_read_are_told_until_the_table_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ops, source = OpsTables(LakehousePaths(tmp_path)), {"landing": "orders", "files": "*", "format": "parquet"}
    bronze = bronze_spec(columns={"n": {"type": "bigint"}}, source=source)
    first, last = recorded_by_an_earlier_version(monkeypatch, tmp_path, bronze), load_batch(tmp_path, bronze)
    store_rows_of(ops, bronze, first, first, last)
    told = (
        "bronze.orders: recompute: values: an earlier Millrace may have rounded, cut off or guessed values of n. "
        "1 interval with 2 rows follows the old spec: lakehouse rebuild bronze.orders --downstream"
    )
    found = diff_for_run(bronze, first, ops)
    assert (found.lines(), found.needs_run, found.misfit) == ((told,), False, "")
    ops.specs.record(bronze, last.intent.table_id)
    assert diff_for_run(bronze, last, ops).lines() == (), "a run tells it once"
    assert table_diff(bronze, last, ops).lines() == (told,)
    store_rows_of(ops, bronze, last)
    assert table_diff(bronze, last, ops).lines() == (), "all files with old rows were delivered again"


def test_a_table_that_must_be_rebuilt_has_one_command_for_that() -> None:
    changes = (SpecChange("keys", Effect.REBUILD, "others"), SpecChange("rows", Effect.RECOMPUTE, "an earlier spec"))
    for table, command in (
        (BRONZE.table, f"rebuild {BRONZE.table} --downstream"),
        (SILVER.table, f"rebuild {SILVER.table}"),
    ):
        found = TableDiff(table, changes, rows=2, newest=day(1).start)
        lines = "\n".join((*found.lines(), found.misfit))
        assert lines.count("lakehouse") == lines.count(f"lakehouse {command}") == 2, lines
        assert "2 rows follow the old spec, until the rebuild" in lines


def test_a_key_that_an_earlier_version_read_needs_a_rebuild_and_runs_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {**silver_document()["columns"], "order_id": {"type": "bigint", "from": "order_id"}}
    silver, ops = silver_spec(columns=columns), OpsTables(LakehousePaths(tmp_path))
    last = recorded_by_an_earlier_version(monkeypatch, tmp_path, silver)
    found = diff_for_run(silver, last, ops)
    [told] = [line for line in found.lines() if "recompute" in line]
    assert "values of order_id" in told
    assert told.endswith(". Only a rebuild computes all rows again: lakehouse rebuild silver.orders")
    assert not any(change.key == "values" for change in found.with_effect(Effect.REBUILD))


def test_a_silver_table_into_which_an_earlier_version_merged_a_rebuild_is_told_until_its_own_rebuild(
    tmp_path: Path,
) -> None:
    ops, path = OpsTables(LakehousePaths(tmp_path)), LakehousePaths(tmp_path).table(BRONZE.table)
    load_batch(tmp_path, BRONZE)
    before = sources_reading(tmp_path, bronze__orders=(None, 1))
    load_batch(tmp_path, SILVER, sources=before)
    DeltaTable(str(path)).alter.set_table_properties({TABLE_ID: "rebuilt"}, raise_if_not_exists=False)
    after = before.model_copy(update={"source_ids": {BRONZE.table: "rebuilt"}})

    def told(**more: Any) -> list[str]:
        last = load_batch(tmp_path, SILVER, sources=after.model_copy(update=more))
        ops.specs.record(SILVER, last.intent.table_id)
        lines = table_diff(SILVER, last, ops).lines()
        return [line for line in lines if "earlier Millrace merged its rebuild; rows may hold values" in line]

    assert [line.split(". ")[-1] for line in told()] == [
        "Only a rebuild computes all rows again: lakehouse rebuild silver.orders"
    ]
    assert len(told()) == 1, "later batches change nothing of it"
    shutil.rmtree(ops.paths.table(SILVER.table))
    assert told() == []
    load_batch(tmp_path, SILVER, sources=before)
    assert told(rebuilt=(BRONZE.table,)) == []


def test_topics_are_not_read_again_so_that_their_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"kafka": "main", "topics": ["orders"], "format": "json"}
    kafka = bronze_spec(source=source, columns={"n": {"type": "bigint"}, "at": {"type": "date"}})
    last, ops = recorded_by_an_earlier_version(monkeypatch, tmp_path, kafka), OpsTables(LakehousePaths(tmp_path))
    store_rows_of(ops, kafka, last)
    [line] = [line for line in table_diff(kafka, last, ops).lines() if "recompute" in line]
    assert line.endswith("1 interval with 1 row follows the old spec, for good: topics delete their messages")


def test_a_silver_column_of_the_type_of_its_source_was_not_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = LakehousePaths(tmp_path).table(BRONZE.table)
    types = {"order_id": pa.string(), "day": pa.date32(), "amount": pa.int32(), "event_seq": pa.string()}
    DeltaTable.create(str(source), pa.schema([*types.items()]))
    at = {**silver_document()["columns"]["event_at"], "from": "event_seq"}
    silver = silver_spec(columns={**silver_document()["columns"], "event_at": at})
    last, ops = recorded_by_an_earlier_version(monkeypatch, tmp_path, silver), OpsTables(LakehousePaths(tmp_path))
    texts = {change.key: change.text for change in diff_for_run(silver, last, ops).changes}
    assert texts["values"].endswith("values of event_at, event_seq")


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

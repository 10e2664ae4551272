"""How a table differs from its spec by its ledger and its log, and the paths and the ledger of its rebuild."""

from __future__ import annotations

import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from include.contracts.spec.table_spec import AnySpec
from include.control.changes.staging import StagedDeletes, copy_ledger, copy_loads, remove_staging, staged_paths
from include.control.changes.table_diff import TableDiff, diff_for_run, table_diff
from include.control.gates.gates import Gates
from include.control.ledger import spec_history
from include.control.ledger.deletes import DeleteRecords, Deletes, are_allowed
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import resolve
from include.control.ledger.spec_history import document_of
from include.control.log.batch import BatchSources, FileFact, Stream, Winner
from include.control.ops_tables import OpsTables
from include.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_document, gold_spec, silver_document, silver_spec
from tests.support.ledger.delta_tables import day, file_contents, intent_of, judge, load_batch, sources_reading

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()
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
    assert [change.key for change in after.changes] == ["measures.most", "sources"]
    assert after.computes_all_groups, "no batch has computed it"


def test_groups_that_an_older_spec_has_computed_are_counted_whatever_the_last_batch_followed(tmp_path: Path) -> None:
    ops, batches = OpsTables(LakehousePaths(tmp_path)), [load_batch(tmp_path, spec) for spec in (GOLD, MORE)]
    for spec in (GOLD, MORE):
        ops.specs.record(spec, batches[0].intent.table_id)
    tokens = [batch.token for batch in (batches[0], batches[0], batches[1])]
    write_deltalake(
        str(ops.paths.table(GOLD.table)), pa.table({"_batch_token": tokens}), mode="overwrite", schema_mode="overwrite"
    )
    assert table_diff(MORE, batches[1], ops).lines() == (
        "gold.revenue_daily: recompute: rows: an earlier spec has computed them. 2 rows follow the old spec: "
        "lakehouse run --table gold.revenue_daily --reprocess --interval ...",
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
    last = recorded_by_an_earlier_version(monkeypatch, tmp_path, bronze, rows=2)
    told = (
        "bronze.orders: recompute: values: an earlier Millrace may have rounded, cut off or guessed values of n. "
        "1 interval with 2 rows follows the old spec: lakehouse rebuild bronze.orders --downstream"
    )
    found = diff_for_run(bronze, last, ops)
    assert (found.lines(), found.needs_run, found.misfit) == ((told,), False, "")
    last = load_batch(tmp_path, bronze, rows=3)
    ops.specs.record(bronze, last.intent.table_id)
    assert diff_for_run(bronze, last, ops).lines() == (), "a run tells it once"
    assert table_diff(bronze, last, ops).lines() == (told,)
    shutil.rmtree(ops.paths.table(bronze.table))
    rebuilt = load_batch(tmp_path, bronze)
    ops.specs.record(bronze, rebuilt.intent.table_id)
    assert table_diff(bronze, rebuilt, ops).lines() == ()


def test_topics_are_not_read_again_so_that_their_rows_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = {"kafka": "main", "topics": ["orders"], "format": "json"}
    kafka = bronze_spec(source=source, columns={"n": {"type": "bigint"}, "at": {"type": "date"}})
    last, ops = recorded_by_an_earlier_version(monkeypatch, tmp_path, kafka), OpsTables(LakehousePaths(tmp_path))
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


def test_the_tables_that_it_builds_are_in_its_folder_and_all_others_in_place() -> None:
    staged = staged_paths(LakehousePaths(Path("/lake")), "r1", ["silver.orders"])
    folder = "/lake/_millrace/rebuilds/r1"
    assert staged.table("bronze.orders").as_posix() == "/lake/bronze/orders"
    assert staged.quarantine("bronze.orders").as_posix() == "/lake/bronze_quarantine/orders"
    assert staged.table("silver.orders").as_posix() == f"{folder}/silver/orders"
    assert staged.quarantine("silver.orders").as_posix() == f"{folder}/silver_quarantine/orders"
    assert staged.tombstones("silver.orders", "5b0e").as_posix() == f"{folder}/silver_tombstones/orders/5b0e"
    assert staged.ops("gates").as_posix() == f"{folder}/ops/gates"
    assert staged.leases.as_posix() == f"{folder}/_millrace/leases"


def test_its_ledger_has_the_events_of_the_tables_that_it_reads_and_changes_nothing_of_the_lakehouse(
    tmp_path: Path,
) -> None:
    live = LakehousePaths(tmp_path)
    staged = staged_paths(live, "r1", [SILVER.table])
    for versions in (1, 2):
        winner = load_batch(tmp_path, BRONZE)
        judge(tmp_path, BRONZE, winner.version)
        lake = file_contents(tmp_path / "ops")
        copy_ledger(live, staged, [BRONZE.table])
        assert file_contents(tmp_path / "ops") == lake
        assert Gates(staged).certified(BRONZE.table) == versions
        position = resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged))
        assert position.last == winner
    remove_staging(staged)
    assert file_contents(tmp_path / "ops") == lake
    assert not list(live.rebuilds.iterdir())


def test_after_a_switch_its_ledger_has_the_events_of_the_lakehouse(tmp_path: Path) -> None:
    live, winner = LakehousePaths(tmp_path), load_batch(tmp_path, BRONZE)
    judge(tmp_path, BRONZE, winner.version)
    staged = staged_paths(live, "r1", [SILVER.table])
    for folder in ("bronze", "ops"):  # as if it were built here: the same id, and another history
        shutil.copytree(tmp_path / folder, Path(staged.staging) / folder)
    judge(Path(staged.staging), BRONZE, load_batch(Path(staged.staging), BRONZE).version)

    copy_ledger(live, staged, [BRONZE.table])

    assert Gates(staged).certified(BRONZE.table) == winner.version
    assert resolve(staged.table(BRONZE.table), Stream(BRONZE.table), Ledger(staged)).last == winner


def test_a_file_that_a_person_gave_up_stays_given_up(tmp_path: Path) -> None:
    live, staged = LakehousePaths(tmp_path), staged_paths(LakehousePaths(tmp_path), "r1", [BRONZE.table])
    table, broken = BRONZE.table, FileFact("orders/cut.json", 7, 1, "aa", "cut")
    Ledger(live).record_files(FileEvent.FAILED, table, "old", day(1), [broken])
    Ledger(live).record_files(FileEvent.GIVEN_UP, table, "old", day(1), [broken])
    Ledger(staged).record_files(FileEvent.FAILED, table, "new", day(1), [broken])
    for _ in range(2):
        copy_loads(live, staged, table, ("old", "new"), 7)
    (failure,) = Ledger(live).failures(table, "new").values()
    assert (failure.given_up, failure.attempts) == (True, 2)


@pytest.mark.parametrize("source_id", ["first source", "rebuilt source"])
def test_deletes_that_a_person_allowed_are_allowed_in_a_rebuild(tmp_path: Path, source_id: str) -> None:
    live, staged = LakehousePaths(tmp_path), staged_paths(LakehousePaths(tmp_path), "r1", [SILVER.table])
    allowed = Deletes(SILVER.table, "old", day(2).start, BRONZE.table, "first source", 5, keys=9, of_keys=10)
    DeleteRecords(live).record_allowed(allowed, said_by="ann", reason="meant", run_id="r")
    intent = intent_of("rebuilt source", 12, stream=Stream(BRONZE.table), sources=BatchSources(rebuild="r"))
    Ledger(live).record_committed([Winner(intent, 12)])
    copy_ledger(live, staged, [BRONZE.table])

    deletes = StagedDeletes(staged, DeleteRecords(live)).allowed_deletes(SILVER.table, "new", source_id)

    def is_allowed(keys: int, start: datetime) -> bool:
        version = 5 if source_id == "first source" else 12
        return are_allowed(deletes, keys, version, version, start)

    assert (is_allowed(9, day(2).start), is_allowed(10, day(2).start), is_allowed(9, day(3).start)) == (
        True,
        False,
        False,
    )
    assert DeleteRecords(live).allowed_deletes(SILVER.table, "new", source_id) == []

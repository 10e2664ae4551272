"""Dropped tables: nobody reads them, everything of them comes back, and they are gone when their time is over."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from embedded.servers.s3 import Bucket
from millrace.catalog import load_catalog
from millrace.clock import utc_now
from millrace.contracts.lake_path import LakePath, S3Path
from millrace.control.leases.leases import Leases
from millrace.control.leases.store import lakehouse_leases
from millrace.control.ledger.holds import HoldEvent
from millrace.control.log.batch import Repair
from millrace.control.log.stored_tables import options_of
from millrace.control.ops_tables import OpsTables
from millrace.control.repair import dropped as dropped_module
from millrace.control.repair.dropped import delete_expired, dropped_tables
from millrace.control.repair.interrupted import interrupted
from millrace.control.storage import folders
from millrace.control.storage.stored_files import delete_files, files_below, read_bytes
from millrace.erase.erasing import Erasure
from millrace.erase.subjects import Subjects
from millrace.errors import ExitCode, RepairError, UnknownNameError
from millrace.paths import LakehousePaths
from millrace.reading.certified import certified
from millrace.repair.dropping import drop, plan_drop, undrop
from millrace.settings import Settings
from tests.support.cli import Lakehouse
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    catalog_of,
    gold_document,
    silver_document,
    write_specs,
)
from tests.support.ledger.delta_tables import create_table, file_contents, judge, load_batch
from tests.support.ledger.quarantine_rows import quarantine, refused

OLD = bronze_spec(table="bronze.old")
EMPTY = catalog_of()


@pytest.fixture
def old(settings: Settings) -> Path:
    """A certified table with refused rows, whose spec is gone."""
    root = Path(str(settings.paths.root))
    for rows in (2, 3):
        winner = load_batch(root, OLD, rows=rows)
        judge(root, OLD, winner.version)
    quarantine(settings.paths, OLD.table, refused(1), by=winner.intent)
    return Path(str(settings.paths.table(OLD.table)))


def stored(settings: Settings) -> Mapping[str, bytes]:
    """Everything of the table: its versions, and its quarantine."""
    files = file_contents(Path(str(settings.paths.root)))
    return {name: content for name, content in files.items() if name.startswith("bronze")}


def leases(ops: OpsTables) -> Leases:
    return lakehouse_leases(ops.paths, "test", timedelta(seconds=5))


def drop_it(ops: OpsTables, table: str = OLD.table) -> Repair:
    decided = Repair(id=plan_drop(table, EMPTY, ops).id, said_by="ann", why="nobody reads it")
    drop(table, decided, "drop", EMPTY, ops, leases(ops))
    return decided


@contextmanager
def interrupted_after(moves: int) -> Iterator[None]:
    """Interrupt a drop, or its undrop, after so many moved folders."""
    done, move = list[LakePath](), dropped_module.move_folder

    def move_or_die(source: LakePath, target: LakePath) -> None:
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(source)
        move(source, target)

    with pytest.MonkeyPatch.context() as patches:
        patches.setattr(dropped_module, "move_folder", move_or_die)
        yield


def begin_drop(ops: OpsTables, moves: int) -> Repair:
    """Drop the table, and be interrupted after so many moved folders."""
    decided = Repair(id=plan_drop(OLD.table, EMPTY, ops).id, said_by="ann", why="nobody reads it")
    with interrupted_after(moves), pytest.raises(KeyboardInterrupt):
        drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
    return decided


def test_a_dropped_table_comes_back_exactly_as_it_was(lakehouse: Lakehouse, settings: Settings, old: Path) -> None:
    before = stored(settings)
    shown = lakehouse("repair", "drop", OLD.table).stdout.splitlines()
    assert shown[1].startswith("Rows: 5 in version 2; 3 versions in ")
    assert "bronze_quarantine.old: 1 row" in shown
    assert f"For 30 days it comes back with: lakehouse repair undrop {OLD.table}. Then maintenance deletes it." in shown
    assert stored(settings) == before
    command = shown[-1].removeprefix("To do exactly this: lakehouse ").removesuffix(" --why ...").split()
    assert lakehouse(*command).exit_code == ExitCode.BAD_INPUT, "without a reason"
    dropped = lakehouse(*command, "--why", "nobody reads it")
    assert "it comes back with: lakehouse repair undrop bronze.old" in dropped.stdout, dropped.output
    assert not old.exists()
    assert stored(settings) == {}
    with pytest.raises(UnknownNameError):
        certified(OLD.table, settings.paths.root)
    for listing in ("tables", "health"):
        assert f"{OLD.table}: dropped by " in lakehouse(listing).stdout
    assert lakehouse("repair", "drop", OLD.table).exit_code == ExitCode.WRONG_USAGE
    assert lakehouse("maintain").exit_code == 0

    back = lakehouse("repair", "undrop", OLD.table, "--why", "somebody does")
    assert f"{OLD.table} is back as it was. Readers use version 2." in back.stdout, back.output
    assert stored(settings) == before
    assert f"{OLD.table}: dropped" not in lakehouse("tables").stdout
    assert load_batch(Path(str(settings.paths.root)), OLD).batch_seq == 3, "the ledger goes on"
    assert lakehouse("repair", "undrop", OLD.table, "--why", "again").exit_code == ExitCode.WRONG_USAGE
    events = OpsTables(settings.paths).repairs
    assert (events.count_done(OLD.table, "drop"), events.count_done(OLD.table, "undrop")) == (1, 1)
    assert not events.open([OLD.table])
    drop_it(OpsTables(settings.paths))
    assert OpsTables(settings.paths).repairs.count_done(OLD.table, "drop") == 2, "each drop is recorded"


def test_a_table_that_something_needs_is_not_dropped(lakehouse: Lakehouse, settings: Settings, old: Path) -> None:
    ops, root = OpsTables(settings.paths), Path(str(settings.paths.root))
    orders = load_catalog(settings.tables).spec("bronze.orders")
    load_batch(root, orders)
    declared = lakehouse("repair", "drop", orders.table)
    assert "bronze.orders: its spec would build it again" in declared.stderr
    write_specs(settings.tables, silver_document("silver.reader", source=OLD.table))
    read = lakehouse("repair", "drop", OLD.table)
    assert (read.exit_code, read.stderr.split("\n")[0]) == (ExitCode.BAD_INPUT, "bronze.old: silver.reader reads it")
    other = {"column": "order_id", "other_table": OLD.table, "other_column": "order_id"}
    query = f"SELECT t.* FROM {{table}} t LEFT ANTI JOIN {{{OLD.table}}} o ON t.order_id = o.order_id"
    for rule in (
        {"expect_column_values_to_exist_in_other_table": other, "action": "fail"},
        {"expect_query_to_return_no_rows": {"query": query}, "action": "fail"},
    ):
        write_specs(settings.tables, silver_document("silver.reader", expectations=[rule]))
        assert "bronze.old: silver.reader reads it" in lakehouse("repair", "drop", OLD.table).stderr
    (settings.tables / "silver" / "shop" / "reader.yaml").unlink()
    ops.holds.record(HoldEvent.SET, "case-17", [OLD.table], said_by="ann", why="court order")
    held = lakehouse("repair", "drop", OLD.table)
    assert "Release the hold first: lakehouse hold release case-17" in held.stderr
    ops.holds.record(HoldEvent.RELEASED, "case-17", [OLD.table], said_by="ann", why="closed")
    [plan] = json.loads(lakehouse("repair", "drop", OLD.table, "--json").stdout)
    load_batch(root, OLD)
    changed = lakehouse("repair", "drop", OLD.table, "--execute", plan["id"], "--why", "nobody reads it")
    assert "would do something else than what" in changed.stderr
    assert old.exists()


def test_another_table_of_that_name_stays_and_is_never_taken_for_the_dropped_one(settings: Settings, old: Path) -> None:
    ops = OpsTables(settings.paths)
    decided = drop_it(ops)
    create_table(old)
    before = stored(settings)
    for catalog in (EMPTY, catalog_of(OLD)):
        with pytest.raises(RepairError, match="another table stands there"):
            drop(OLD.table, decided, "drop", catalog, ops, leases(ops))
    with pytest.raises(RepairError, match="another table stands there"):
        undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert ops.repairs.open([OLD.table]) == [], "nothing was begun"
    [deleted] = delete_expired(ops, "maintenance", utc_now() + timedelta(days=31))
    assert deleted.endswith("is deleted")
    with pytest.raises(UnknownNameError, match="is deleted by now"):
        undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert stored(settings) == before


def test_of_several_dropped_tables_of_a_name_that_with_the_id_comes_back(
    lakehouse: Lakehouse, settings: Settings, old: Path
) -> None:
    ops, before = OpsTables(settings.paths), stored(settings)
    drop_it(ops)
    create_table(old)
    refused_ = lakehouse("repair", "undrop", OLD.table, "--why", "finance needs it").stderr
    drop_it(ops)
    several = lakehouse("repair", "undrop", OLD.table, "--why", "finance needs it")
    assert several.exit_code == ExitCode.BAD_INPUT
    assert several.stderr.startswith("bronze.old was dropped 2 times\nSay which one: --id ")
    [command] = re.findall("then: lakehouse (.*)", refused_)
    assert lakehouse(*command.split(), "--why", "finance needs it").exit_code == 0
    assert stored(settings) == before


def test_a_drop_that_cannot_go_on_is_not_called_interrupted(settings: Settings, old: Path) -> None:
    ops, after = OpsTables(settings.paths), utc_now() + timedelta(days=31)
    begin_drop(ops, 1)
    assert [each.action for each in interrupted([OLD.table], ops)] == ["drop"]
    create_table(old)
    assert interrupted([OLD.table], ops) == [], "another table stands there"
    [deleted] = delete_expired(ops, "maintenance", after)
    assert deleted.endswith("is deleted")
    drop_it(ops)
    undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert interrupted([OLD.table], ops) == []


def test_a_drop_that_goes_on_takes_no_table_that_something_needs_by_now(settings: Settings, old: Path) -> None:
    ops, root = OpsTables(settings.paths), Path(str(settings.paths.root))
    decided = begin_drop(ops, 0)
    with pytest.raises(RepairError, match="its spec would build it again"):
        drop(OLD.table, decided, "drop", catalog_of(OLD), ops, leases(ops))
    ops.holds.record(HoldEvent.SET, "case-17", [OLD.table], said_by="ann", why="court order")
    with pytest.raises(RepairError, match="ann holds it"):
        drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
    ops.holds.record(HoldEvent.RELEASED, "case-17", [OLD.table], said_by="ann", why="closed")
    judge(root, OLD, load_batch(root, OLD).version)
    with pytest.raises(RepairError, match="would do something else than what"):
        drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
    assert old.exists()
    again = drop_it(ops)
    assert [each.record.repair for each in dropped_tables(ops.paths)] == [again.id], "not the one that was interrupted"


@pytest.mark.parametrize("is_back", [False, True])
def test_a_table_whose_drop_or_undrop_was_interrupted_is_not_deleted(
    settings: Settings, old: Path, is_back: bool
) -> None:
    ops = OpsTables(settings.paths)
    before = stored(settings)
    if is_back:
        drop_it(ops)
        with interrupted_after(1), pytest.raises(KeyboardInterrupt):
            undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    else:
        begin_drop(ops, 1)
    [stays] = delete_expired(ops, "maintenance", utc_now() + timedelta(days=31))
    words = "stays: an undrop" if is_back else "stays: a drop"
    assert f"{words} that ann decided was interrupted" in stays
    undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert stored(settings) == before


@pytest.mark.parametrize("moved", range(3))
def test_an_interrupted_drop_goes_on_and_can_be_undone(settings: Settings, old: Path, moved: int) -> None:
    before, ops = stored(settings), OpsTables(settings.paths)
    decided = begin_drop(ops, moved)
    if moved != 1:
        drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
        assert stored(settings) == {}
    undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert stored(settings) == before
    assert dropped_tables(ops.paths) == []


def test_a_dropped_table_is_deleted_when_its_time_is_over_unless_it_is_held(
    lakehouse: Lakehouse, settings: Settings, old: Path
) -> None:
    ops, now = OpsTables(settings.paths), utc_now()
    drop_it(ops)
    assert list(delete_expired(ops, "maintenance", now + timedelta(days=29))) == []
    after = now + timedelta(days=31)
    held = lakehouse("hold", "set", "case-17", OLD.table, "--why", "court order")
    assert held.exit_code == 0, held.output
    [stays] = delete_expired(ops, "maintenance", after)
    assert re.search("stays: .* holds it since", stays)
    assert lakehouse("hold", "release", "case-17", "--why", "closed").exit_code == 0
    [deleted] = delete_expired(ops, "maintenance", after)
    assert deleted.endswith("is deleted")
    assert list(files_below(ops.paths.dropped)) == []
    with pytest.raises(UnknownNameError, match="is deleted by now"):
        undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))


def test_a_person_is_found_in_a_dropped_table_which_never_comes_back_after_the_erasure(
    lakehouse: Lakehouse, settings: Settings, tmp_path: Path
) -> None:
    path = Path(str(settings.paths.table(OLD.table)))
    write_deltalake(str(path), pa.table({"n": [1], "buyer": ["C-1777"]}))
    ops = OpsTables(settings.paths)
    drop_it(ops)
    empty = bronze_spec(table="bronze.empty")
    write_deltalake(str(settings.paths.table(empty.table)), pa.table({"n": [2]}))
    drop_it(ops, empty.table)
    columns = {"order_id": {"type": "string"}, "buyer": {"type": "string"}, "day": {"type": "date"}}
    write_specs(
        settings.tables,
        bronze_document(columns=columns, subject_keys={"buyer": "customer"}),
        silver_document(columns=columns, sequence_by=["order_id"]),
        gold_document(measures={"orders": "count(*)"}),
    )
    (tmp_path / "subjects").write_text("C-1777\n")
    answer = lakehouse("erase", "find", "customer", "--subjects", str(tmp_path / "subjects"), "--json")
    assert answer.exit_code == 0, answer.output
    [found] = json.loads(answer.stdout)
    [place] = [each for each in found["places"] if each["name"] == f"{OLD.table}, dropped"]
    assert place["rows"] == 1
    assert place["due"] is not None

    write_deltalake(str(settings.paths.table("bronze.orders")), pa.table({"order_id": ["1"], "buyer": ["C-18"]}))
    catalog = load_catalog(settings.tables)
    erasure = Erasure(Subjects("customer", ("C-1777",)), "DSR-17", catalog, settings, ops)
    erasure.execute(erasure.plan().id, "ann", "asked in May", "erase", lambda _: None)  # only a dropped table has rows
    assert "DSR-17 has erased somebody" in lakehouse("tables").stdout
    with pytest.raises(RepairError, match="DSR-17 has erased somebody whom the dropped table still has"):
        undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert not path.exists()
    undrop(empty.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    [deleted] = delete_expired(ops, "maintenance", utc_now() + timedelta(days=31))
    assert deleted.endswith("is deleted")


def test_a_table_in_a_bucket_is_moved_file_by_file_and_an_interrupted_move_goes_on(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = LakehousePaths(S3Path(f"s3://{bucket.name}/{tmp_path.name}"))
    ops, path = OpsTables(paths), paths.table(OLD.table)
    for number in range(3):
        write_deltalake(str(path), pa.table({"n": [number]}), mode="append", storage_options=options_of(path))

    def crash(*_: object) -> None:
        raise KeyboardInterrupt

    def contents() -> dict[str, bytes]:
        return {file.path: read_bytes(path / file.path) for file in files_below(path)}

    before = contents()
    decided = Repair(id=plan_drop(OLD.table, EMPTY, ops).id, said_by="ann", why="nobody reads it")
    with monkeypatch.context() as patches:
        patches.setattr(folders, "delete_files", crash)
        with pytest.raises(KeyboardInterrupt):
            drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
    assert contents() == before
    first, *_ = sorted(name for name in before if name.startswith("_delta_log"))
    delete_files(path, [first])  # as if it had been interrupted a moment later
    drop(OLD.table, decided, "drop", EMPTY, ops, leases(ops))
    assert contents() == {}
    undrop(OLD.table, "ann", "somebody reads it", "undrop", ops, leases(ops))
    assert contents() == before
    rows = DeltaTable(str(path), storage_options=options_of(path)).to_pyarrow_table()
    assert sorted(rows["n"].to_pylist()) == [0, 1, 2]
    assert list(files_below(paths.dropped)) == []

"""A table is built anew beside the one in use: readers keep that one until the new one has passed, then all moves."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from include.catalog import load_catalog
from include.contracts.job.contention import LeaseWait
from include.control.changes.table_diff import table_diff
from include.control.leases.leases import Leases
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.control.log.batch import FileFact, Intent
from include.control.log.delta_log import latest_version
from include.control.ops_tables import OpsTables
from include.control.planning.stream_positions import stream_position
from include.errors import ExitCode, Outcome
from tests.support.documents.specs import silver_document
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import file_contents
from tests.support.rebuilt_shop import (
    BRONZE,
    DAYS,
    GOLD,
    SILVER,
    TABLES,
    fresh_shop,
    load_days,
    rows_of_fresh_shop,
    visible_rows,
    write_shop_specs,
)

NEW_KEYS = "CASE WHEN event_seq > 6 THEN concat('new ', order_id) ELSE order_id END"


@pytest.fixture(scope="module")
def loaded(shared: Lakehouse) -> Lakehouse:
    write_shop_specs(shared)
    load_days(shared, 1, 2)
    return shared


@pytest.fixture
def shop(loaded: Lakehouse, tmp_path: Path) -> Lakehouse:
    return copy_lakehouse(loaded, tmp_path / "shop")


@pytest.mark.parametrize(
    ("asked", "changes"),
    [
        (SILVER, {"keys": ["order_id", "day"]}),
        pytest.param(BRONZE, {"kind": "bigint"}, marks=pytest.mark.slow),
    ],
    ids=["other keys", "another type in all layers"],
)
def test_the_new_table_takes_the_place_of_the_old_one_and_work_goes_on(
    shop: Lakehouse, tmp_path: Path, asked: str, changes: dict[str, Any]
) -> None:
    before, versions = visible_rows(shop), {table: latest_version(shop.paths.table(table)) for table in TABLES}
    write_shop_specs(shop, **changes)
    assert shop.run(asked, 2).outcome is Outcome.BAD_INPUT

    report = shop.rebuild(asked, downstream=True)

    assert report.exit_code is ExitCode.OK, report.message
    rebuilt = TABLES[TABLES.index(asked) :]
    assert report.details["tables"] == {table: versions[table] + 1 for table in rebuilt}
    fresh = fresh_shop(tmp_path / "anew", 1, 2, **changes)
    assert visible_rows(shop) == visible_rows(fresh)
    old = DeltaTable(str(shop.paths.table(asked)), version=versions[asked]).to_pyarrow_table()
    assert sorted(old["order_id"].to_pylist(), key=repr) == sorted((row[0] for row in before[asked]), key=repr)
    ops = OpsTables(shop.paths)
    for table in TABLES:
        spec = load_catalog(shop.folder / "tables").spec(table)
        position = stream_position(spec, shop.paths, ops.ledger)
        assert position is not None
        assert table_diff(spec, position.last, ops).changes == ()
        assert shop.run(table, 2).outcome is Outcome.NO_OP, "the new table has read all that there is"
    for each in (shop, fresh):
        load_days(each, 3)
    assert visible_rows(shop) == visible_rows(fresh)
    assert not list(shop.paths.rebuilds.iterdir())


def test_files_that_are_gone_are_named_and_nothing_is_switched_unless_that_is_meant(shop: Lakehouse) -> None:
    (shop.folder / "landing" / "orders" / "date=2013-01-02" / "a.json").unlink()
    lake = file_contents(shop.paths.root)
    dry = shop.rebuild(BRONZE, dry_run=True)
    assert dry.details == {"tables": [BRONZE], "gone": ["orders/date=2013-01-02/a.json"]}
    refused = shop.rebuild(BRONZE)
    assert (refused.outcome, "orders/date=2013-01-02/a.json" in refused.message) == (Outcome.BAD_INPUT, True)
    assert file_contents(shop.paths.root) == lake
    assert shop.rebuild(BRONZE, allow_missing=True).exit_code is ExitCode.OK
    assert len(shop.rows(BRONZE, "order_id")) == len(DAYS[1])


@pytest.mark.slow
def test_a_table_whose_gate_refuses_what_was_built_stays_and_the_rebuild_can_be_cancelled(shop: Lakehouse) -> None:
    before = visible_rows(shop)
    rule = {"expect_table_row_count_to_be_between": {"min_value": 99}, "action": "fail"}
    write_shop_specs(shop, keys=["order_id", "day"])
    shop.specs(silver_document(keys=["order_id", "day"], expectations=[rule]))
    assert shop.rebuild(SILVER).outcome is Outcome.GATE_FAILED
    assert visible_rows(shop) == before
    cancelled = shop.rebuild(SILVER, cancel=True)
    assert (cancelled.outcome, "readers saw nothing" in cancelled.message) == (Outcome.COMMITTED, True)
    assert shop.rebuild(SILVER, cancel=True).outcome is Outcome.NO_OP
    assert not list(shop.paths.rebuilds.iterdir())
    write_shop_specs(shop)
    load_days(shop, 3)


@pytest.mark.slow
def test_an_undone_rebuild_brings_back_the_table_and_what_it_knew(shop: Lakehouse, tmp_path: Path) -> None:
    before, own = visible_rows(shop), table_id(shop.paths.table(SILVER))
    write_shop_specs(shop, keys=["order_id", "day"])
    assert shop.rebuild(SILVER).exit_code is ExitCode.OK
    assert table_id(shop.paths.table(SILVER)) != own
    write_shop_specs(shop)
    undone = shop.rebuild(SILVER, undo=True)
    assert undone.exit_code is ExitCode.OK, undone.message
    assert (visible_rows(shop), table_id(shop.paths.table(SILVER))) == (before, own)
    assert shop.rebuild(SILVER, undo=True).outcome is Outcome.NOT_READY
    load_days(shop, 3)
    assert visible_rows(shop) == rows_of_fresh_shop(tmp_path / "later", 1, 2, 3)


@pytest.mark.slow
def test_tables_that_were_rebuilt_together_are_undone_together_and_go_on(shop: Lakehouse, tmp_path: Path) -> None:
    before, own = visible_rows(shop), [table_id(shop.paths.table(table)) for table in TABLES]
    write_shop_specs(shop, kind="bigint")
    assert shop.rebuild(BRONZE, downstream=True).exit_code is ExitCode.OK
    write_shop_specs(shop)
    assert shop.rebuild(BRONZE, undo=True, downstream=True, dry_run=True).details == {"tables": list(TABLES)}
    alone = shop.rebuild(BRONZE, undo=True)
    assert (set(alone.details["tables"]), f"still as rebuilt: {SILVER}, {GOLD}" in alone.message) == ({BRONZE}, True)

    others = shop.rebuild(BRONZE, undo=True, downstream=True)

    assert set(others.details["tables"]) == {SILVER, GOLD}, others.message
    assert (visible_rows(shop), [table_id(shop.paths.table(table)) for table in TABLES]) == (before, own)
    assert shop.rebuild(BRONZE, undo=True, downstream=True).outcome is Outcome.NOT_READY
    load_days(shop, 3)
    assert visible_rows(shop) == rows_of_fresh_shop(tmp_path / "later", 1, 2, 3)


@pytest.mark.faults
def test_tables_below_one_that_was_rebuilt_alone_go_on_with_its_rows(shop: Lakehouse, tmp_path: Path) -> None:
    before = visible_rows(shop)
    assert shop.rebuild(BRONZE).exit_code is ExitCode.OK
    assert shop.run(SILVER, 2).exit_code is ExitCode.OK
    assert shop.run(GOLD, 2).exit_code is ExitCode.OK
    assert visible_rows(shop) == before
    load_days(shop, 3)
    assert visible_rows(shop) == rows_of_fresh_shop(tmp_path / "later", 1, 2, 3)


@pytest.mark.slow
def test_a_driver_that_has_read_the_spec_of_before_writes_nothing_to_the_new_table(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.deliver(3, "a.json", DAYS[3])
    assert shop.run(BRONZE, 3).outcome is Outcome.COMMITTED
    of_before, waited = Leases.stream, []

    def rebuild_meanwhile(leases: Leases, table: str, stream: str) -> AbstractContextManager[LeaseWait]:
        monkeypatch.undo()
        write_shop_specs(shop, keys=["order_id", "day"])
        waited.append(shop.rebuild(SILVER).outcome)
        return of_before(leases, table, stream)

    monkeypatch.setattr(Leases, "stream", rebuild_meanwhile)
    report = shop.run(SILVER, 3)
    assert waited == [Outcome.COMMITTED]
    assert (report.outcome, "keys: " in report.message) == (Outcome.BAD_INPUT, True)
    assert OpsTables(shop.paths).gates.certified(SILVER) == latest_version(shop.paths.table(SILVER))


@pytest.mark.faults
def test_a_batch_that_was_under_way_without_its_lease_is_planned_again_on_the_new_table(
    shop: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.deliver(3, "a.json", DAYS[3])
    assert shop.run(BRONZE, 3).outcome is Outcome.COMMITTED
    record, switched = Ledger.record_intent, []

    def then_the_switch(ledger: Ledger, intent: Intent, files: Sequence[FileFact] = ()) -> None:
        monkeypatch.undo()
        record(ledger, intent, files)
        with monkeypatch.context() as patch:
            patch.setattr(Leases, "table", lambda *_: nullcontext())  # the batch has lost its lease
            rebuilt = shop.rebuild(SILVER)
        assert rebuilt.exit_code is ExitCode.OK, rebuilt.message
        switched.append(rebuilt.version)

    monkeypatch.setattr(Ledger, "record_intent", then_the_switch)
    report = shop.run(SILVER, 3)
    assert report.exit_code is ExitCode.OK, report.message
    assert switched == [latest_version(shop.paths.table(SILVER))], "the rebuild had read all of it"
    assert shop.run(GOLD, 3).exit_code is ExitCode.OK
    assert visible_rows(shop) == rows_of_fresh_shop(tmp_path / "anew", 1, 2, 3)


@pytest.mark.slow
def test_keys_that_are_gone_are_counted_though_as_many_others_have_come(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(one, 1, seq=one) for one in range(10)])
    for report in lakehouse.run_all(1, BRONZE, SILVER):
        assert report.exit_code is ExitCode.OK, report.message
    renamed = {**silver_document()["columns"], "order_id": {"type": "string", "from": NEW_KEYS}}
    lakehouse.specs(silver_document(columns=renamed, max_deleted_percent=20))

    refused = lakehouse.rebuild(SILVER)

    assert refused.outcome is Outcome.DELETES_REFUSED, refused.message
    assert refused.message.startswith(
        f"{SILVER}: 3 of 10 keys (30 %) are missing in the rebuilt table, such as order_id=o"
    )
    assert len(lakehouse.rows(SILVER, "order_id")) == 10
    assert lakehouse.rebuild(SILVER, allow_deletes=True).exit_code is ExitCode.OK
    assert len(lakehouse.rows(SILVER, "order_id")) == 10, "as many as before"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("percent", "said"),
    [
        pytest.param(20, "would be deleted", marks=pytest.mark.faults, id="one of the deletes was allowed"),
        pytest.param(50, "are missing in the rebuilt", id="all snapshots in one batch"),
    ],
)
def test_rows_that_nobody_let_go_do_not_go_by_a_rebuild(lakehouse: Lakehouse, percent: int, said: str) -> None:
    snapshot = {"snapshot": "full", "sequence_by": [], "except_column_list": ["event_at", "event_seq", "day"]}
    lakehouse.specs(silver_document(**snapshot, max_deleted_percent=percent))
    for number, orders in {1: 9, 2: 5, 3: 1}.items():
        lakehouse.deliver(number, "a.json", [order(one, number) for one in range(orders)])
        assert lakehouse.run(BRONZE, number).outcome is Outcome.COMMITTED
        asked = lakehouse.run(SILVER, number, allow_deletes="ann" if (number, percent) == (2, 20) else "")
        assert asked.outcome is (Outcome.DELETES_REFUSED if number == 3 else Outcome.COMMITTED)
        if (number, percent) == (2, 20):
            assert lakehouse.rebuild(SILVER).exit_code is ExitCode.OK, "what was allowed goes again"
    held = lakehouse.rows(SILVER, "order_id", "amount")
    assert [amount for _, amount in held] == [2] * 5

    refused = lakehouse.rebuild(SILVER)

    assert refused.outcome is Outcome.DELETES_REFUSED
    assert refused.message.startswith(f"silver.orders: 4 of 5 keys (80 %) {said}"), refused.message
    assert refused.message.endswith(f"lakehouse rebuild {SILVER} --allow-deletes")
    assert lakehouse.rows(SILVER, "order_id", "amount") == held
    assert lakehouse.rebuild(SILVER, allow_deletes=True).exit_code is ExitCode.OK
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o0", 3)]

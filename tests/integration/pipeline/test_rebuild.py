"""A table is built anew beside the one in use: readers keep that one until the new one has passed, then all moves."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.job.contention import LeaseWait
from millrace.contracts.job.report import CheckResult
from millrace.contracts.row_status import RowStatus
from millrace.control.changes.table_diff import table_diff
from millrace.control.gates.verification import RULE, record_verification
from millrace.control.leases.leases import Leases
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact, Intent
from millrace.control.log.delta_log import latest_version, read_commit
from millrace.control.log.stored_tables import open_table
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.control.quarantine.events import Decision, RowEvent
from millrace.errors import ExitCode, Outcome
from millrace.reading.certified import certified
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day, file_contents
from tests.support.silver.rebuilt_shop import (
    BRONZE,
    DAYS,
    GOLD,
    SILVER,
    TABLES,
    given_days,
    load_days,
    right_rows,
    visible_rows,
    write_shop_specs,
)


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    write_shop_specs(shared)
    for number in (1, 2):
        given(shared, BRONZE, DAYS[number], number, "a.json")
    for table in (SILVER, GOLD):
        assert shared.run(table, 2).exit_code is ExitCode.OK
    assert visible_rows(shared) == right_rows(2)
    return shared


def changes_of(shop: Lakehouse, table: str) -> list[str]:
    ops, spec = OpsTables(shop.paths), load_catalog(shop.folder / "tables").spec(table)
    position = stream_position(spec, shop.paths, ops.ledger)
    assert position
    return [change.key for change in table_diff(spec, position.last, ops).changes]


def decisions(shop: Lakehouse) -> list[tuple[str, RowStatus]]:
    return sorted((row.record, row.status) for row in shop.waiting(SILVER, *RowStatus))


def require_work_goes_on(shop: Lakehouse) -> None:
    """The rebuilt tables follow their specs and have read all that there is, and the third day of bronze ends right."""
    for table in TABLES:
        assert changes_of(shop, table) == []
        assert shop.run(table, 2).outcome is Outcome.NO_OP, "the new table has read all that there is"
    given_days(shop, 3)
    assert visible_rows(shop) == right_rows(3)
    assert not list(shop.paths.rebuilds.iterdir())


def test_the_new_table_takes_the_place_of_the_old_one_once_its_gate_passes_it_and_work_goes_on(
    shop: Lakehouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEHOUSE_VIEWS", str(tmp_path / "views"))
    before, versions = visible_rows(shop), {table: latest_version(shop.paths.table(table)) for table in TABLES}
    rule = {"expect_table_row_count_to_be_between": {"min_value": 99}, "action": "fail"}
    shop.specs(gold_document(expectations=[rule]))
    assert shop.rebuild(GOLD).outcome is Outcome.GATE_FAILED
    assert visible_rows(shop) == before
    cancelled = shop.rebuild(GOLD, cancel=True)
    assert (cancelled.outcome, "readers saw nothing" in cancelled.message) == (Outcome.COMMITTED, True)
    assert shop.rebuild(GOLD, cancel=True).outcome is Outcome.NO_OP
    assert not list(shop.paths.rebuilds.iterdir())
    write_shop_specs(shop, keys=["order_id", "day"])
    assert shop.run(SILVER, 2).outcome is Outcome.BAD_INPUT
    shop.specs(gold_document("gold.never_written"))
    plan = shop.rebuild(SILVER, downstream=True, dry_run=True).for_people
    assert "\n\nsilver.orders: keys: " in plan, plan
    at = datetime.now(UTC)

    report = shop.rebuild(SILVER, downstream=True)

    assert report.exit_code is ExitCode.OK, report.message
    assert report.details["tables"] == {table: versions[table] + 1 for table in (SILVER, GOLD)}
    commits = [read_commit(shop.paths.table(table), version) for table, version in report.details["tables"].items()]
    assert [commit and commit.interval for commit in commits] == [day(2)] * 2, "the newest of what they read"
    views = json.loads((tmp_path / "views" / "certified.json").read_text())
    assert {table: views[table]["version"] for table in (SILVER, GOLD)} == report.details["tables"]
    assert visible_rows(shop) == right_rows(2)
    old = certified(SILVER, shop.paths.root, at=at).arrow()
    assert sorted(old["order_id"].to_pylist()) == [row[0] for row in before[SILVER]]
    require_work_goes_on(shop)


def test_files_that_are_gone_are_named_and_nothing_is_switched_unless_that_is_meant(shop: Lakehouse) -> None:
    shop.change_spec(
        BRONZE, lambda spec: {**spec, "source": {**spec["source"], "on_changed_file": "append_new_version"}}
    )
    given(shop, BRONZE, [order(6, 6)], 1, "a.json")
    assert len(shop.rows(BRONZE, "order_id")) == len(DAYS[1]) + len(DAYS[2]) + 1
    (shop.folder / "landing" / "orders" / "date=2013-01-02" / "a.json").unlink()
    lake = file_contents(shop.paths.root)
    dry = shop.rebuild(BRONZE, dry_run=True)
    gone = ["orders/date=2013-01-01/a.json (an earlier content)", "orders/date=2013-01-02/a.json"]
    assert dry.details == {"tables": [BRONZE], "gone": gone}
    refused = shop.rebuild(BRONZE)
    assert (refused.outcome, all(f"  {path}\n" in refused.message for path in gone)) == (Outcome.BAD_INPUT, True)
    assert file_contents(shop.paths.root) == lake
    other = shop.rebuild(BRONZE, allow_missing=True, plan=dry.for_people.replace("7 rows", "8 rows"))
    assert (other.outcome, "else than what was approved" in other.message) == (Outcome.BAD_INPUT, True), other.message
    rebuilt = shop.rebuild(BRONZE, allow_missing=True, plan=dry.for_people)
    assert (rebuilt.exit_code, rebuilt.notes) == (
        ExitCode.OK,
        (f"2 loaded landing files no longer exist, such as {gone[0]}",),
    )
    again = shop.rebuild(BRONZE, allow_missing=True, plan=dry.for_people)
    assert (again.outcome, "another one needs another approval" in again.message) == (Outcome.NO_OP, True)
    assert shop.rows(BRONZE, "order_id") == [("o6",)]


@pytest.mark.slow
def test_tables_that_were_rebuilt_together_are_undone_together_and_go_on(shop: Lakehouse) -> None:
    before, own = visible_rows(shop), [table_id(shop.paths.table(table)) for table in TABLES]
    gates, failure = OpsTables(shop.paths).gates, CheckResult(rule=RULE, passed=False, action="fail")
    verdicts = gates.verdicts(GOLD)
    assert verdicts
    record_verification(load_catalog(shop.folder / "tables").spec(GOLD), verdicts, failure, gates, is_whole=True)
    versions = {table: latest_version(shop.paths.table(table)) for table in TABLES}
    write_shop_specs(shop, kind="bigint")
    assert shop.run(BRONZE, 2).outcome is Outcome.BAD_INPUT
    rebuilt = shop.rebuild(BRONZE, downstream=True)
    assert rebuilt.exit_code is ExitCode.OK
    assert rebuilt.details["tables"] == {table: version + 1 for table, version in versions.items()}
    assert visible_rows(shop) == right_rows(2)
    assert str(open_table(shop.paths.table(SILVER)).to_pyarrow_table().schema.field("amount").type) == "int64"
    assert set(own).isdisjoint(table_id(shop.paths.table(table)) for table in TABLES)
    require_work_goes_on(copy_lakehouse(shop, shop.folder.with_name("rebuilt")))
    write_shop_specs(shop)
    assert shop.rebuild(BRONZE, undo=True, downstream=True, dry_run=True).details == {"tables": list(TABLES)}
    alone = shop.rebuild(BRONZE, undo=True)
    assert (set(alone.details["tables"]), f"still as rebuilt: {SILVER}, {GOLD}" in alone.message) == ({BRONZE}, True)

    others = shop.rebuild(BRONZE, undo=True, downstream=True)

    assert set(others.details["tables"]) == {SILVER, GOLD}, others.message
    assert f"it has the rows of version {verdicts.certified}, which a verification found wrong" in others.message
    assert "rows_equal_their_sources" in shop.run(GOLD, 2).message
    assert OpsTables(shop.paths).gates.certified(GOLD) is None
    assert shop.run(GOLD, 2, reprocess=True).exit_code is ExitCode.OK
    assert (visible_rows(shop), [table_id(shop.paths.table(table)) for table in TABLES]) == (before, own)
    assert shop.rebuild(BRONZE, undo=True, downstream=True).outcome is Outcome.NOT_READY
    load_days(shop, 3)
    assert visible_rows(shop) == right_rows(3)


@pytest.mark.slow
def test_tables_below_one_that_was_rebuilt_alone_go_on_with_its_rows(shop: Lakehouse) -> None:
    before = visible_rows(shop)
    write_shop_specs(shop, max_deleted_percent=20)
    for number in (1, 2):
        others = [
            {
                "name": event["order_id"] and f"k{event['order_id'][1:]}",
                "cents": event["amount"] and event["amount"] * 100,
            }
            for event in DAYS[number]
        ]
        shop.deliver(number, "a.json", [event | other for event, other in zip(DAYS[number], others, strict=True)])

    def read_from(**fields: str) -> dict[str, Any]:
        """Rebuild bronze alone, with columns that read these fields; then run the others."""
        columns = {name: {**column, "from": fields.get(name, name)} for name, column in bronze["columns"].items()}
        shop.specs({**bronze, "columns": columns})
        assert shop.rebuild(BRONZE).exit_code is ExitCode.OK
        assert BRONZE in changes_of(shop, SILVER)
        refused = shop.run(SILVER, 2)
        assert (refused.outcome, f"{BRONZE} was rebuilt without them" in refused.message) == (
            Outcome.DELETES_REFUSED,
            True,
        ), refused.message
        shop.run_well(2, SILVER, allow_deletes="ann")
        shop.run_well(2, GOLD)
        assert changes_of(shop, SILVER) == []
        return visible_rows(shop)

    bronze = bronze_document(columns={**bronze_document()["columns"], "op": {"type": "string"}})
    other = read_from(amount="cents", order_id="name")
    assert [row[:2] for row in other[SILVER]] == [("k2", 700), ("k4", 200)]
    assert (other["refused"], other["dead"]) == ([-100, 400], [{"order_id": "k1"}])
    assert "all keys were computed again: bronze.orders was rebuilt" in " ".join(shop.reports[-2].notes)
    assert read_from() == before
    load_days(shop, 3)
    assert visible_rows(shop) == right_rows(3)
    shop.replay(SILVER, assign={"amount": "abs(amount)"}, rows={"reason": "amount"})
    [no_id] = shop.waiting(SILVER)
    silver_id, quarantine = table_id(shop.paths.table(SILVER)), OpsTables(shop.paths).quarantine
    quarantine.record(RowEvent.DISCARDED, SILVER, silver_id, [no_id.id], Decision("ann", "no id", "run"))
    fixed, decided = shop.rows(SILVER, "order_id", "amount"), decisions(shop)
    assert ("o3", 1) in fixed
    assert {status for _, status in decided} == {RowStatus.REPLAYED, RowStatus.DISCARDED}
    assert shop.rebuild(BRONZE).exit_code is ExitCode.OK
    shop.run_well(3, SILVER)
    assert no_id.id not in {row.id for row in shop.waiting(SILVER, *RowStatus)}, "it was loaded by another batch"
    assert shop.rows(SILVER, "order_id", "amount") == fixed, "what a person has fixed stays"
    assert decisions(shop) == decided
    assert shop.rebuild(BRONZE, downstream=True).exit_code is ExitCode.OK
    assert {status for _, status in decisions(shop)} == {RowStatus.FIXED, RowStatus.DISCARDED}, (
        "a rebuild reads what came"
    )


@pytest.mark.slow
def test_a_driver_that_has_read_the_spec_of_before_writes_nothing_to_the_new_table(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(shop, BRONZE, DAYS[3], 3)
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
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    given(shop, BRONZE, DAYS[3], 3)
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
    assert visible_rows(shop) == right_rows(3)


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
        given(lakehouse, BRONZE, [order(one, number) for one in range(orders)], number)
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

"""A spec changes: the next run applies what touches no row, says what is to be recomputed, and refuses the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.catalog import load_catalog
from millrace.control.changes.spec_changes import Effect
from millrace.control.changes.table_diff import TableDiff, table_diff
from millrace.control.log.delta_log import commits_after, latest_version
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, copy_lakehouse, order
from tests.support.ledger.delta_tables import day, file_contents

BRONZE, SILVER, GOLD = TABLES = ("bronze.orders", "silver.orders", "gold.revenue_daily")


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two days in all three layers."""
    for number in (1, 2):
        for table in (BRONZE, SILVER):
            given(shared, table, [order(number, number, of_day=number), order(9, 9, number)], number, "a.json")
    assert shared.run(GOLD, 2).outcome is Outcome.COMMITTED
    assert [found(shared, table).changes for table in TABLES] == [()] * 3
    return shared


def found(shop: Lakehouse, table: str) -> TableDiff:
    ops, spec = OpsTables(shop.paths), load_catalog(shop.folder / "tables").spec(table)
    position = stream_position(spec, shop.paths, ops.ledger)
    return table_diff(spec, position.last if position else None, ops)


def with_column(document: dict[str, Any], name: str, **column: Any) -> dict[str, Any]:
    return {**document, "columns": {**document["columns"], name: {**document["columns"].get(name, {}), **column}}}


def test_columns_measures_and_comments_come_with_the_next_run_in_commits_that_say_whose_they_are(
    shop: Lakehouse, tmp_path: Path
) -> None:
    before = {table: latest_version(shop.paths.table(table)) for table in TABLES}
    colour = {"type": "string", "description": "as printed"}
    silver = with_column(silver_document(description="Orders"), "colour", **colour)
    shop.specs(
        with_column(bronze_document(), "colour", **colour),
        with_column(silver, "amount", description="in cents"),
        gold_document(measures={**gold_document()["measures"], "most": "max(o.amount)", "colours": "count(o.colour)"}),
    )
    assert [found(shop, table).with_effect(Effect.APPLIED) != [] for table in TABLES] == [True] * 3
    too_early = copy_lakehouse(shop, tmp_path / "too_early")
    for table, source in ((GOLD, SILVER), (SILVER, BRONZE)):
        report = too_early.run(table, 2, reprocess=True)
        assert (report.outcome, report.message.split("\n")) == (
            Outcome.NOT_READY,
            [
                f"{table}: {source} has no column colour yet in the version that is read",
                f"Run {source} first: its next run adds the column, and its gate must pass it.",
            ],
        )
    shop.deliver(3, "a.json", [order(3, 3, of_day=3, colour="blue")])

    reports = shop.run_all(3, *TABLES)

    assert [report.exit_code for report in reports] == [ExitCode.OK] * 3, [report.message for report in reports]
    assert all(any("follows its spec: added the columns" in note for note in report.notes) for report in reports)
    assert shop.rows(SILVER, "order_id", "colour") == [("o1", None), ("o2", None), ("o3", "blue"), ("o9", None)]
    groups = [(10, 9, 0), (2, 2, 0), (3, 3, 1)]
    assert shop.rows(GOLD, "revenue", "most", "colours") == groups, "also of groups that nothing has touched"
    for table in TABLES:
        changes = [one for one in commits_after(shop.paths.table(table), before[table]) if not one.txns]
        assert changes, "changed in a commit of its own"
        assert {one.run_id for one in changes} == {"test of day 3"}
        assert not any(one.changes_data for one in changes)
        assert found(shop, table).changes == ()
    delta = DeltaTable(str(shop.paths.table(SILVER)))
    comments = {field.name: field.metadata.get("comment") for field in delta.schema().fields}
    described = (delta.metadata().description, comments["amount"], comments["colour"])
    assert described == ("Orders", "in cents", "as printed")
    again = file_contents(shop.paths.root)
    assert [report.outcome for report in shop.run_all(3, *TABLES)] == [Outcome.NO_OP] * 3
    assert file_contents(shop.paths.root) == again


def test_another_meaning_names_the_intervals_and_rows_that_follow_the_old_one(shop: Lakehouse) -> None:
    changed = with_column(silver_document(), "amount", **{"from": "amount * 10"})
    shop.specs(changed)
    diff = found(shop, SILVER)
    assert (diff.outdated, diff.rows) == ((day(1).start, day(2).start), 4)
    assert diff.lines() == (
        "silver.orders: recompute: columns.amount.from: now amount * 10. 2 intervals with 4 rows follow "
        "the old spec: lakehouse run --table silver.orders --reprocess --interval 2013-01-01 --to 2013-01-02",
    )
    given(shop, BRONZE, [order(8, 8)], 1, "late.json")
    given(shop, SILVER, [order(8, 80)], 1)
    diff = found(shop, SILVER)
    assert (diff.outdated, diff.rows) == ((day(1).start, day(2).start), 4), "a late file leaves the rows before it"
    assert shop.run(SILVER, 2, reprocess=True).exit_code is ExitCode.OK
    assert found(shop, SILVER).outdated == (day(1).start,)
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 1), ("o2", 20), ("o8", 80), ("o9", 90)]


@pytest.mark.parametrize("history", [{}, {"stored_as_scd_type": 2}], ids=["last_state", "history"])
def test_reprocess_gives_new_values_to_rows_that_a_person_fixed_too_and_tells_of_no_ties(
    lakehouse: Lakehouse, history: dict[str, Any]
) -> None:
    spec = silver_document(expectations=[AT_LEAST_0], **history)
    lakehouse.specs(bronze_document(), spec)
    given(lakehouse, BRONZE, [order(1, 1), order(2, -2)])
    lakehouse.run_well(1, SILVER)
    fixed = lakehouse.replay(SILVER, assign={"amount": "abs(amount)"}, why="the till's sign was wrong")
    assert fixed.outcome is Outcome.COMMITTED, fixed.message
    lakehouse.specs(with_column(spec, "amount", **{"from": "amount * 10"}))

    report = lakehouse.run(SILVER, reprocess=True)

    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 10), ("o2", 20)]
    assert (report.outcome, report.rows.read, report.rows.quarantined) == (Outcome.COMMITTED, 3, 1)
    assert not report.findings.ties.keys, "an event does not tie with an earlier form of itself"
    assert found(lakehouse, SILVER).changes == ()
    assert [note for note in report.notes if "went into quarantine" not in note] == [], "nothing is left to recompute"


def test_a_changed_measure_is_computed_for_all_groups_also_after_a_restore_of_the_version_that_has_it(
    shop: Lakehouse,
) -> None:
    changed = {"measures": {"orders": "count(*)", "revenue": "sum(o.amount) * 10"}}
    before = shop.rows(GOLD, "day", "revenue")
    too_many = {"expect_table_row_count_to_be_between": {"max_value": 1}, "action": "fail"}
    shop.specs(gold_document(**changed, expectations=[too_many], on_refusal="restore"))
    assert "The next run reads the refused batches again" in shop.run(GOLD, 2).message
    assert shop.rows(GOLD, "day", "revenue") == before
    shop.specs(gold_document(**changed))
    given(shop, BRONZE, [order(3, 3, 3, of_day=3)], 3)
    given(shop, SILVER, [order(3, 3, 3, of_day=3)], 3)

    assert shop.run(GOLD, 3).exit_code is ExitCode.OK

    assert [revenue for _, revenue in shop.rows(GOLD, "day", "revenue")] == [*(10 * old for _, old in before), 30]
    assert found(shop, GOLD).changes == ()


def test_what_every_row_stands_on_is_refused_and_the_way_out_is_named(shop: Lakehouse) -> None:
    for right, changed, key in (
        (silver_document(), silver_document(keys=["order_id", "day"]), "keys"),
        (silver_document(), with_column(silver_document(), "amount", type="bigint"), "columns.amount.type"),
        (bronze_document(), with_column(bronze_document(), "amount", type="bigint"), "columns.amount.type"),
        (gold_document(), gold_document(group_by={"day": "date_add(o.day, 1)"}), "group_by"),
    ):
        table = changed["table"]
        shop.specs(changed)
        lake = file_contents(shop.paths.table(table))
        assert [change.key for change in found(shop, table).with_effect(Effect.REBUILD)] == [key]
        report = shop.run(table, 2)
        assert report.outcome is Outcome.BAD_INPUT
        assert f"{key}: " in report.message
        assert f": lakehouse rebuild {table}; in Airflow, the link Table rebuild " in report.message
        assert file_contents(shop.paths.table(table)) == lake
        shop.specs(right)

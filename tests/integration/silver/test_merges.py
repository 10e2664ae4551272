"""Silver on real Delta: the same rows in any order, few rewritten files, every row counted."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.control.log.delta_log import read_commit
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order
from tests.support.silver.silver_models import tombstones

BRONZE, SILVER = "bronze.orders", "silver.orders"
DAYS = {
    1: [order(1, 5, 8), order(2, 7, 8), order(1, 6, 9)],
    2: [order(1, 4, 7), order(2, 8, 10, of_day=2), order(3, 1, 3, of_day=2), order(3, 1, 3, of_day=2)],
    3: [order(2, 9, 9, of_day=2), order(4, 2, 1, of_day=3), order(1, 6, 9)],
}
SILVER_ROWS = [("o1", 6, 9), ("o2", 8, 10), ("o3", 1, 3), ("o4", 2, 1)]


def silver_rows(lakehouse: Lakehouse) -> list[tuple[str, int, int]]:
    return [(key, amount, at.hour) for key, amount, at in lakehouse.rows(SILVER, "order_id", "amount", "event_at")]


def test_intervals_out_of_order_and_repeated_end_in_the_right_rows_and_no_event_before_a_delete_inserts_its_row(
    lakehouse: Lakehouse,
) -> None:
    lakehouse.specs(
        bronze_document(columns={**bronze_document()["columns"], "op": {"type": "string"}}),
        silver_document(apply_as_deletes="op = 'delete'"),
    )

    def ended(number: int, hour: int) -> dict[str, Any]:
        return order(number, None, hour, op="delete")

    begun = [order(6, 5, 1), order(7, 5, 1), ended(8, 9), order(9, 5, 1)]
    deleted = [ended(6, 5), ended(7, 3), order(7, 6, 4), ended(9, 5)]
    late = [order(6, 7, 4), order(8, 7, 8), ended(7, 2), order(9, 8, 6)]
    ends = []
    for number, events in ((3, [*DAYS[3], *begun]), (1, [*DAYS[1], *deleted]), (2, [*DAYS[2], *DAYS[1], *late])):
        given(lakehouse, BRONZE, events, number)
        report = lakehouse.run(SILVER, number)
        assert report.outcome is Outcome.COMMITTED, report.message
        ends.append([key for key, _, _ in silver_rows(lakehouse) if key >= "o6"])
    assert ends == [["o6", "o7", "o9"], ["o7"], ["o7", "o9"]]
    assert silver_rows(lakehouse) == [*SILVER_ROWS, ("o7", 6, 4), ("o9", 8, 6)]


def test_a_merge_rewrites_only_files_that_can_match_and_no_unchanged_row(lakehouse: Lakehouse) -> None:
    keyed = {**silver_document(), "keys": ["day", "order_id"]}
    lakehouse.specs(keyed)
    given(lakehouse, SILVER, [order(i, i, 1) for i in range(50)])
    given(lakehouse, BRONZE, [order(i, i, 1, of_day=2) for i in range(50)], 2)
    lakehouse.run(SILVER, 2)
    files_before = set(DeltaTable(str(lakehouse.paths.table(SILVER))).file_uris())
    assert len(files_before) >= 2
    given(lakehouse, BRONZE, [order(7, 99, 2, of_day=2), order(8, 8, 1, of_day=2)], 2)
    report = lakehouse.run(SILVER, 2)
    assert (report.rows.applied, report.rows.unchanged) == (1, 1)
    commit = read_commit(lakehouse.paths.table(SILVER), report.version or -1)
    assert commit is not None
    assert commit.metrics["numTargetFilesRemoved"] == "1"
    files_after = set(DeltaTable(str(lakehouse.paths.table(SILVER))).file_uris())
    assert len(files_before - files_after) == 1
    given(lakehouse, BRONZE, [order(7, 99, 2, of_day=2), order(9, 9, 1, of_day=2)], 2)
    unchanged = lakehouse.run(SILVER, 2)
    assert (unchanged.rows.unchanged, unchanged.rows.applied) == (2, 0)
    assert set(DeltaTable(str(lakehouse.paths.table(SILVER))).file_uris()) == files_after


def test_reprocess_reads_an_interval_again_and_changes_what_another_rule_or_expression_makes_of_it(
    lakehouse: Lakehouse,
) -> None:
    def state(least: int, **amount: str) -> None:
        rule = {"expect_column_values_to_be_between": {"column": "amount", "min_value": least}, "action": "quarantine"}
        columns = {**silver_document()["columns"], "amount": {"type": "int", **amount}}
        lakehouse.specs(silver_document(expectations=[rule], columns=columns))

    state(0)
    for number in (1, 2):
        rows = [order(number, 5, of_day=number), order(number + 10, -number, of_day=number)]
        given(lakehouse, BRONZE, rows, number)
    assert lakehouse.run(SILVER, 2).rows.quarantined == 2

    state(-200, **{"from": "amount * 100"})
    changed = lakehouse.run(SILVER, 2, reprocess=True)
    assert (changed.outcome, changed.rows.read, changed.rows.applied) == (Outcome.COMMITTED, 2, 2)
    assert changed.rows.quarantined == 0
    assert ["o11" in row["record"] for row in lakehouse.quarantine(SILVER)] == [True]
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o1", 5), ("o12", -200), ("o2", 500)]


def test_the_properties_of_a_table_follow_its_spec_and_without_a_change_feed_no_row_is_read_twice(
    lakehouse: Lakehouse,
) -> None:
    def properties() -> dict[str, str]:
        return DeltaTable(str(lakehouse.paths.table(SILVER))).metadata().configuration

    lakehouse.specs(bronze_document(maintenance={"change_data_feed": False}))
    for table in (BRONZE, SILVER):
        given(lakehouse, table, DAYS[1], 1)
    assert properties()["delta.deletedFileRetentionDuration"] == "interval 30 days"
    # Of what rows are looked for by, no hash and no token among them.
    assert properties()["delta.dataSkippingStatsColumns"].split(",")[:2] == ["order_id", "_batch_seq"]
    assert not {"_source_hash", "_batch_token"} & set(properties()["delta.dataSkippingStatsColumns"].split(","))

    maintenance = {"vacuum": {"retain": "45 days"}, "change_data_feed": False}
    lakehouse.specs(silver_document(maintenance=maintenance, delta={"delta.dataSkippingStatsColumns": "order_id"}))
    for number in (2, 3):
        given(lakehouse, BRONZE, DAYS[number], number)

    assert lakehouse.run(SILVER, 3).rows.read == len(DAYS[2]) + len(DAYS[3])
    assert silver_rows(lakehouse) == SILVER_ROWS
    stated = properties()
    assert stated["delta.deletedFileRetentionDuration"] == "interval 45 days"
    assert stated["delta.logRetentionDuration"] == "interval 45 days", "Delta wants it as long at least"
    assert stated["delta.enableChangeDataFeed"] == "false"
    assert stated["delta.dataSkippingStatsColumns"] == "order_id"


TRUNCATED = {
    1: [order(1, 5, 1), order(2, 7, 9)],
    2: [{**order(None, None, 5), "op": "truncate"}, order(3, 4, 4), order(4, 6, 6)],
    3: [order(1, 8, 3), order(5, 2, 7)],
}


def state_truncates(lakehouse: Lakehouse, **changes: Any) -> None:
    columns = {**bronze_document()["columns"], "op": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns, **changes), silver_document(apply_as_truncates="op = 'truncate'"))


@pytest.mark.slow
def test_any_order_of_intervals_ends_in_what_came_after_the_truncate(lakehouse: Lakehouse) -> None:
    state_truncates(lakehouse)
    for number in (3, 2, 1):
        given(lakehouse, BRONZE, TRUNCATED[number], number)
        lakehouse.run(SILVER, number)
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o2", 7), ("o4", 6), ("o5", 2)]
    assert not lakehouse.quarantine(SILVER), "a truncate needs no key"


@pytest.mark.faults
def test_a_truncate_of_a_replaced_file_is_remembered_without_a_change_feed(lakehouse: Lakehouse) -> None:
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    state_truncates(lakehouse, source=source, maintenance={"change_data_feed": False})
    for rows in ([{**order(None, None, 5), "op": "truncate"}, order(1, 5, 6)], [order(2, 7, 7), order(3, 1, 4)]):
        lakehouse.deliver(1, "a.json", rows)
        assert {report.exit_code for report in lakehouse.run_all(1, BRONZE, SILVER)} == {0}
    assert lakehouse.rows(SILVER, "order_id", "amount") == [("o2", 7)]
    assert [(key, sequence) for key, (sequence, _) in tombstones(lakehouse, SILVER).items()] == [(None, (5, 1))]

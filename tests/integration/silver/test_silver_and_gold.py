"""Silver and gold on real Delta: the same rows in any order, few rewritten files, every row counted."""

from __future__ import annotations

import shutil

from deltalake import DeltaTable

from include.contracts.job.args import Job
from include.control.log.delta_log import read_commit
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER, GOLD = "bronze.orders", "silver.orders", "gold.revenue_daily"
DAYS = {
    1: [order(1, 5, 8), order(2, 7, 8), order(1, 6, 9)],
    2: [order(1, 4, 7), order(2, 8, 10, of_day=2), order(3, 1, 3, of_day=2), order(3, 1, 3, of_day=2)],
    3: [order(2, 9, 9, of_day=2), order(4, 2, 1, of_day=3), order(1, 6, 9)],
}
SILVER_ROWS = [("o1", 6, 9), ("o2", 8, 10), ("o3", 1, 3), ("o4", 2, 1)]


def silver_rows(lakehouse: Lakehouse) -> list[tuple[str, int, int]]:
    return [(key, amount, at.hour) for key, amount, at in lakehouse.rows(SILVER, "order_id", "amount", "event_at")]


def gold_from_scratch(lakehouse: Lakehouse) -> list[tuple[object, int, int]]:
    totals: dict[object, list[int]] = {}
    for day, amount in lakehouse.rows(SILVER, "day", "amount"):
        totals.setdefault(day, []).append(amount)
    return sorted(((day, len(amounts), sum(amounts)) for day, amounts in totals.items()), key=repr)


def test_intervals_out_of_order_and_repeated_end_in_the_right_rows(lakehouse: Lakehouse) -> None:
    for number, events in DAYS.items():
        lakehouse.deliver(number, "a.json", events)
    for number in (3, 1, 2, 1):
        reports = lakehouse.run_all(number, BRONZE, SILVER, GOLD)
        assert {report.exit_code for report in reports} == {0}, [report.message for report in reports]
        assert all(report.rows.are_conserved for report in reports)
    assert silver_rows(lakehouse) == SILVER_ROWS
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_deletes_are_remembered_so_that_an_older_event_cannot_insert_the_row(lakehouse: Lakehouse) -> None:
    lakehouse.specs(
        bronze_document(columns={**bronze_document()["columns"], "op": {"type": "string"}}),
        silver_document(apply_as_deletes="op = 'delete'"),
    )
    days = [
        [order(1, 5, 1), order(2, 5, 1), order(3, None, 9, op="delete")],
        [order(1, None, 5, op="delete"), order(2, None, 3, op="delete"), order(2, 6, 4)],
        [order(1, 7, 4), order(3, 7, 8), order(2, None, 2, op="delete")],
        [order(1, 8, 6)],
    ]
    ends = []
    for number, events in enumerate(days, start=1):
        given(lakehouse, BRONZE, events, number)
        report = lakehouse.run(SILVER, number)
        assert report.outcome == Outcome.COMMITTED, report.message
        ends.append([key for key, _, _ in silver_rows(lakehouse)])
    assert ends == [["o1", "o2"], ["o2"], ["o2"], ["o1", "o2"]]


def test_rows_without_key_or_sequence_or_against_a_rule_are_quarantined_and_counted(lakehouse: Lakehouse) -> None:
    rules = [
        {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"},
        {"expect_column_values_to_not_be_null": {"column": "day"}, "action": "drop", "reason": "no day"},
    ]
    lakehouse.specs(silver_document(expectations=rules))
    undated, undayed = order(3, 5), order(4, 5)
    undated["event_at"], undayed["day"] = None, None
    given(lakehouse, BRONZE, [order(1, 5), order(None, 5), order(2, -1), undated, undayed], 1)
    report = lakehouse.run(SILVER)
    assert report.rows.model_dump(exclude_defaults=True) == {
        "read": 5, "applied": 1, "quarantined": 3, "dropped": 1, "inserted": 1
    }  # fmt: skip
    reasons = sorted(reason for row in lakehouse.quarantine(SILVER) for reason in row["reasons"])
    assert len(reasons) == 3
    assert any("order_id is null" in reason for reason in reasons)
    assert any("event_at is null" in reason for reason in reasons)
    assert any("expect_column_values_to_be_between(amount)" in reason for reason in reasons)


def test_a_merge_rewrites_only_files_that_can_match_and_no_unchanged_row(lakehouse: Lakehouse) -> None:
    keyed = {**silver_document(), "keys": ["day", "order_id"]}
    lakehouse.specs(keyed)
    for number in (1, 2):
        given(lakehouse, BRONZE, [order(i, i, 1, of_day=number) for i in range(50)], number)
        lakehouse.run(SILVER, number)
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


def test_a_full_snapshot_deletes_the_rows_it_lacks_and_supersedes_an_older_snapshot(lakehouse: Lakehouse) -> None:
    rule = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
    snapshot = {**silver_document(snapshot="full", expectations=[rule])}
    del snapshot["sequence_by"]
    lakehouse.specs(snapshot)
    first, older = [order(1, 1), order(2, 2), order(3, 3)], [order(1, 1), order(9, 9)]
    newest = [order(1, 1), order(3, 33), order(4, 4), order(2, -5)]
    for number, states in ((1, first), (3, newest), (2, older)):
        given(lakehouse, BRONZE, states, number)
        report = lakehouse.run(SILVER, number)
        assert report.rows.are_conserved
    assert [row[:2] for row in lakehouse.rows(SILVER, "order_id", "amount")] == [
        ("o1", 1),
        ("o2", 2),
        ("o3", 33),
        ("o4", 4),
    ]
    assert report.rows.superseded == 2, "the older snapshot changed nothing"


def test_reprocess_reads_an_interval_again_and_changes_no_correct_row(lakehouse: Lakehouse) -> None:
    given(lakehouse, BRONZE, DAYS[1], 1)
    lakehouse.run_all(1, SILVER, GOLD)
    assert lakehouse.run(SILVER, 1).outcome == Outcome.NO_OP
    again = lakehouse.run(SILVER, 1, reprocess=True)
    assert (again.outcome, again.rows.read, again.rows.applied) == (Outcome.COMMITTED, 3, 0)
    assert lakehouse.run(GOLD, 1).outcome == Outcome.NO_OP
    assert lakehouse.run(GOLD, 1, reprocess=True).outcome == Outcome.COMMITTED
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_reprocess_checks_again_and_rows_that_a_fixed_rule_accepts_leave_the_quarantine(
    lakehouse: Lakehouse,
) -> None:
    rule = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"}
    lakehouse.specs(silver_document(expectations=[rule]))
    for number in (1, 2):
        given(lakehouse, BRONZE, [order(number, 5), order(number + 10, -number, of_day=number)], number)
        lakehouse.run(SILVER, number)
    refused = sorted(row["record"] for row in lakehouse.quarantine(SILVER))
    assert len(refused) == 2
    assert lakehouse.run(SILVER, 2, reprocess=True).rows.quarantined == 1
    assert sorted(row["record"] for row in lakehouse.quarantine(SILVER)) == refused
    fixed_rule = {"expect_column_values_to_be_between": {"column": "amount", "min_value": -2}, "action": "quarantine"}
    lakehouse.specs(silver_document(expectations=[fixed_rule]))
    assert lakehouse.run(SILVER, 2, reprocess=True).rows.quarantined == 0
    assert ["o11" in row["record"] for row in lakehouse.quarantine(SILVER)] == [True]
    assert ("o12", -2) in lakehouse.rows(SILVER, "order_id", "amount")


def test_reprocess_after_a_changed_expression_changes_every_row(lakehouse: Lakehouse) -> None:
    for number, events in DAYS.items():
        given(lakehouse, BRONZE, events, number)
    lakehouse.run_all(3, SILVER, GOLD)
    in_cents = {"type": "int", "from": "amount * 100"}
    lakehouse.specs(silver_document(columns={**silver_document()["columns"], "amount": in_cents}))
    for number in DAYS:
        assert lakehouse.run(SILVER, number, reprocess=True).rows.are_conserved
    assert silver_rows(lakehouse) == [(key, amount * 100, hour) for key, amount, hour in SILVER_ROWS]
    assert lakehouse.run(GOLD, 3).outcome == Outcome.COMMITTED
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_a_rebuilt_source_is_read_from_its_beginning(lakehouse: Lakehouse) -> None:
    for number in (1, 2):
        given(lakehouse, BRONZE, DAYS[number], number)
    lakehouse.run_all(2, SILVER, GOLD)
    for table in (BRONZE, SILVER):
        shutil.rmtree(lakehouse.paths.table(table))
    given(lakehouse, BRONZE, [order(7, 7, 7)], 1)
    assert [report.outcome for report in lakehouse.run_all(1, SILVER, GOLD)] == 2 * [Outcome.COMMITTED]
    assert silver_rows(lakehouse) == [("o7", 7, 7)]
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_sources_without_a_change_feed_are_read_completely_with_the_same_result(lakehouse: Lakehouse) -> None:
    feed = {"maintenance": {"change_data_feed": False}}
    lakehouse.specs(bronze_document(**feed), silver_document(**feed))
    for number, events in DAYS.items():
        given(lakehouse, BRONZE, events, number)
        if number != 2:
            lakehouse.run_all(number, SILVER, GOLD)
    assert {report.outcome for report in lakehouse.reports} == {Outcome.COMMITTED}
    assert lakehouse.reports[-2].rows.read == sum(map(len, DAYS.values()))
    assert silver_rows(lakehouse) == SILVER_ROWS
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_the_properties_of_a_table_follow_its_spec(lakehouse: Lakehouse) -> None:
    def properties() -> dict[str, str]:
        return DeltaTable(str(lakehouse.paths.table(SILVER))).metadata().configuration

    given(lakehouse, BRONZE, DAYS[1], 1)
    lakehouse.run(SILVER, 1)
    assert properties()["delta.deletedFileRetentionDuration"] == "interval 30 days"
    # Of what rows are looked for by, no hash and no token among them.
    assert properties()["delta.dataSkippingStatsColumns"].split(",")[:2] == ["order_id", "_batch_seq"]
    assert not {"_source_hash", "_batch_token"} & set(properties()["delta.dataSkippingStatsColumns"].split(","))
    maintenance = {"vacuum": {"retain": "45 days"}, "change_data_feed": False}
    lakehouse.specs(silver_document(maintenance=maintenance, delta={"delta.dataSkippingStatsColumns": "order_id"}))
    given(lakehouse, BRONZE, DAYS[2], 2)
    lakehouse.run(SILVER, 2)
    stated = properties()
    assert stated["delta.deletedFileRetentionDuration"] == "interval 45 days"
    assert stated["delta.logRetentionDuration"] == "interval 45 days", "Delta wants it as long at least"
    assert stated["delta.enableChangeDataFeed"] == "false"
    assert stated["delta.dataSkippingStatsColumns"] == "order_id"
    assert lakehouse.run(GOLD, 2).outcome == Outcome.COMMITTED
    assert lakehouse.rows(GOLD, "day", "orders", "revenue") == gold_from_scratch(lakehouse)


def test_a_refused_version_keeps_readers_and_the_next_layer_on_the_certified_one(lakehouse: Lakehouse) -> None:
    rule = {"expect_table_row_count_to_be_between": {"max_value": 2}, "action": "fail", "reason": "two at most"}
    lakehouse.specs(silver_document(expectations=[rule]))
    given(lakehouse, BRONZE, [order(1, 5), order(2, 5)], 1)
    lakehouse.run_all(1, SILVER, GOLD)
    given(lakehouse, BRONZE, [order(3, 5)], 2)
    refused = lakehouse.run(SILVER, 2)
    assert (refused.outcome, refused.version, refused.certified_version) == (Outcome.COMMITTED, 2, 1)
    gate = lakehouse.run(SILVER, 2, job=Job.QUALITY_GATE)
    assert gate.outcome == Outcome.GATE_FAILED
    first_line = gate.message.splitlines()[0]
    assert "silver.orders version 2 refused: expect_table_row_count_to_be_between" in first_line
    assert "readers stay on version 1" in first_line
    assert lakehouse.run(GOLD, 2).outcome == Outcome.NO_OP
    assert [orders for _, orders in lakehouse.rows(GOLD, "day", "orders")] == [2]
    lakehouse.specs(silver_document(expectations=[{**rule, "expect_table_row_count_to_be_between": {"max_value": 9}}]))
    second_report = lakehouse.run(SILVER, 2, job=Job.QUALITY_GATE)
    assert (second_report.outcome, second_report.certified_version) == (Outcome.NO_OP, 2)
    assert lakehouse.run(GOLD, 2).outcome == Outcome.COMMITTED
    assert [orders for _, orders in lakehouse.rows(GOLD, "day", "orders")] == [3]


def test_silver_waits_for_a_certified_source(lakehouse: Lakehouse) -> None:
    report = lakehouse.run(SILVER)
    assert report.outcome == Outcome.NOT_READY
    assert "bronze.orders has no certified version: it was never built" in report.message

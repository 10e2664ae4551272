"""Replays: rows pass the same rules, merge and sequence as any row, once each, and are counted and recorded."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from millrace.cli.quarantine.listing import BY_HAND
from millrace.contracts.job.args import Job
from millrace.contracts.job.column_fix import SetNull
from millrace.contracts.job.requests import QuarantineRequest
from millrace.contracts.row_status import RowStatus
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.control.quarantine.waiting import recount_waiting
from millrace.errors import Outcome
from millrace_spark.layers.quarantine import replays
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"


@pytest.fixture(scope="module")
def made(shared: Lakehouse) -> Lakehouse:
    """Two days of orders; silver refused o2 and o3 for their amounts, and one without a number."""
    shared.specs(silver_document(expectations=[AT_LEAST_0]))
    given(shared, BRONZE, [order(1, 5, 8), order(2, -7, 8), order(3, -1, 8), order(None, 4, 8)])
    assert shared.run(SILVER).outcome is Outcome.COMMITTED
    for table in (BRONZE, SILVER):
        given(shared, table, [order(3, 9, 1, of_day=2), order(4, 1, 8, of_day=2)], 2)
    assert len(shared.waiting(SILVER)) == 3
    return shared


def test_a_fixed_row_is_merged_once_loses_against_newer_events_and_stays_when_its_batch_is_read_again(
    shop: Lakehouse,
) -> None:
    before = {row.id: row for row in shop.waiting(SILVER)}
    report = shop.replay(SILVER, assign={"amount": "abs(amount)"}, why="the till's sign was wrong")
    assert report.outcome == Outcome.COMMITTED, report.message
    assert report.rows.model_dump(exclude_defaults=True) == {
        "read": 3, "applied": 1, "superseded": 1, "quarantined": 1, "inserted": 1
    }  # fmt: skip
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 5), ("o2", 7), ("o3", 9), ("o4", 1)]
    (left,) = shop.waiting(SILVER)
    assert (left.status, left.attempts, "order_id is null" in left.reasons[0]) == (RowStatus.OPEN, 1, True)
    through = shop.waiting(SILVER, RowStatus.REPLAYED)
    assert sorted((row.attempts, row.fix) for row in through) == [(1, "amount = abs(amount)")] * 2
    assert len(shop.quarantine(SILVER)) == 3

    again = shop.replay(SILVER, assign={"amount": "-10 * amount"}, rows={"reason": "amount"})
    assert again.outcome == Outcome.NO_OP, again.message
    decision, identity = Decision("ann", "of nobody", BY_HAND), table_id(shop.paths.table(SILVER))
    with recount_waiting(SILVER, identity, shop.paths):
        QuarantineEvents(shop.paths).record(RowEvent.DISCARDED, SILVER, identity, [left.id], decision)
    assert shop.run(SILVER).outcome == Outcome.NO_OP

    report = shop.run(SILVER, 1, reprocess=True)
    assert (report.rows.read, report.rows.quarantined) == (6, 3), "those that were replayed are read as well"
    rows = {row.id: row for row in shop.waiting(SILVER, *RowStatus)}
    assert rows.keys() == before.keys()
    for row_id, row in rows.items():
        assert row.first_seen == before[row_id].first_seen
        assert (row.last_seen or row.first_seen) > row.first_seen
    assert sorted(row.status for row in rows.values()) == ["discarded", "replayed", "replayed"]
    assert shop.rows(SILVER, "order_id", "amount") == [("o1", 5), ("o2", 7), ("o3", 9), ("o4", 1)]
    shop.specs(silver_document())
    given(shop, BRONZE, [order(5, 1, 9, of_day=3)], 3)
    report = shop.run(SILVER, 1, reprocess=True)
    assert (report.rows.read, report.rows.inserted) == (7, 1), "beside the day, it continues at its position"
    assert (report.rows.superseded, report.rows.quarantined) == (3, 1)
    assert ("o2", 7) in shop.rows(SILVER, "order_id", "amount"), "a fix stays when its rule is loosened"


def test_unchanged_rows_pass_once_their_rule_has_changed_and_many_take_several_batches(
    shop: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "MAX_ROWS", 2)
    shop.specs(silver_document())
    report = shop.replay(SILVER)
    assert report.attempts == 2
    assert (report.rows.read, report.rows.applied, report.rows.superseded, report.rows.quarantined) == (3, 1, 1, 1)
    assert [row.attempts for row in shop.waiting(SILVER, *RowStatus)] == [1, 1, 1], "each is tried once"
    assert ("o2", -7) in shop.rows(SILVER, "order_id", "amount")


def test_a_dry_run_says_what_would_happen_and_writes_nothing(shop: Lakehouse) -> None:
    report = shop.replay(SILVER, assign={"amount": "abs(amount)"}, dry_run=True)
    assert report.outcome == Outcome.NO_OP
    assert "2 pass all rules now, 1 stays refused" in report.message
    assert [row["fate"] for row in report.details["rows"]].count("applied") == 2
    assert not shop.paths.ops("quarantine").exists()
    assert {row.status for row in shop.waiting(SILVER)} == {RowStatus.OPEN}


def test_a_replayed_bronze_row_keeps_its_origin_and_an_unparsable_one_waits_until_a_person_edits_it(
    lakehouse: Lakehouse,
) -> None:
    lakehouse.specs(bronze_document(expectations=[AT_LEAST_0]))
    lakehouse.deliver(1, "a.json", [order(1, 5), "{broken", order(2, -2, colour="red"), order(3, -3)])
    lakehouse.run(BRONZE)
    # As an earlier Millrace read the day number 20089, and kept the row.
    far = 'replace(received, \'"day":"2013-01-01"\', \'"day":"+20089-01-01"\')'
    stored = DeltaTable(str(lakehouse.paths.quarantine(BRONZE)))
    assert stored.update({"received": far}, predicate="received LIKE '%o3%'")["num_updated_rows"] == 1
    broken = next(row for row in lakehouse.waiting(BRONZE) if row.record == "{broken")
    request = QuarantineRequest(said_by="ann", assign={"amount": "0"})
    assert lakehouse.ask(Job.QUARANTINE_FIX, BRONZE, request).details["quarantined"] == 2
    said = f'{{"id": "{broken.id}", "record": {{"order_id": "o9", "amount": "12", "day": "2013-01-01"}}}}'
    request = QuarantineRequest(said_by="ann", edited=said, rows={"ids": [broken.id]})
    lakehouse.ask(Job.QUARANTINE_FIX, BRONZE, request)
    report = lakehouse.replay(BRONZE)
    assert report.rows.model_dump(exclude_defaults=True) == {
        "read": 3, "applied": 2, "quarantined": 1, "inserted": 2
    }, report.message  # fmt: skip
    wanted = ("order_id", "amount", "_source_file", "_batch_seq", "_rescued")
    assert [row[:2] for row in lakehouse.rows(BRONZE, *wanted)] == [("o1", 5), ("o2", 0), ("o9", 12)]
    assert len({row[2] for row in lakehouse.rows(BRONZE, *wanted)}) == 1
    assert {row[4] for row in lakehouse.rows(BRONZE, *wanted)} == {None, '{"colour":"red"}'}
    (left,) = lakehouse.waiting(BRONZE)
    assert left.reasons[0].startswith("value does not fit its type: day is no value that every reader can show")
    assert [row.attempts for row in lakehouse.waiting(BRONZE, RowStatus.REPLAYED)] == [1, 1]


def test_a_csv_record_that_could_not_be_parsed_can_be_loaded_as_far_as_it_was_read(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "files": "*.csv", "format": "csv"}
    lakehouse.specs(bronze_document(source=source))
    lakehouse.deliver(1, "a.csv", ["order_id,amount,day", "o1,5,2013-01-01", "o2,6,2013-01-01,too,many"])
    lakehouse.run(BRONZE)
    assert lakehouse.replay(BRONZE).rows.quarantined == 1, "a replay does not read the text again"
    assert lakehouse.replay(BRONZE, fixes={"_corrupt_record": SetNull()}).rows.applied == 1
    assert lakehouse.rows(BRONZE, "order_id", "amount") == [("o1", 5), ("o2", 6)]

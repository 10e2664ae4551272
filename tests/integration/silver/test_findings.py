"""Refused rows and tied keys in the report of a run, on real Delta."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from millrace.contracts.job.findings import Findings
from millrace.control.quarantine.rows import refusals
from millrace.control.quarantine.stored_rows import StoredRows
from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
HISTORY = {"stored_as_scd_type": 2, "sequence_by": ["event_at"], "except_column_list": ["event_at", "event_seq"]}
FILLED = {"ignore_null_updates": True}


def state(lakehouse: Lakehouse, **changes: Any) -> None:
    lakehouse.specs(bronze_document(), silver_document(**changes))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink(missing_ok=True)


def findings(lakehouse: Lakehouse, number: int, events: Sequence[dict[str, Any]]) -> Findings:
    given(lakehouse, BRONZE, events, number)
    report = lakehouse.run_well(number, SILVER)
    assert set(report.findings.lines(SILVER)) <= set(report.notes), "a person reads of them"
    return report.findings


def tied_keys(found: Findings) -> list[str]:
    assert found.ties.keys == len(found.ties.samples)
    return [sample.split(" at ")[0] for sample in found.ties.samples]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", [HISTORY, *(pytest.param(kind, marks=pytest.mark.faults) for kind in (FILLED, {**HISTORY, **FILLED}))]
)
def test_ties_are_reported_with_their_keys_and_equal_rows_are_none(lakehouse: Lakehouse, kind: dict[str, Any]) -> None:
    state(lakehouse, **kind)
    events = [order(1, 5, 3), order(1, 6, 3), order(2, 7, 3), order(2, 7, 3), order(3, 1, 2), order(4, 1, 2)]
    assert tied_keys(findings(lakehouse, 1, events)) == ["order_id=o1"]
    # With a row of the table: o3 has another one, o2 the same, and o4 a later one.
    assert tied_keys(findings(lakehouse, 2, [order(3, 2, 2), order(2, 7, 3), order(4, 2, 4)])) == ["order_id=o3"]


def test_refused_rows_are_reported_by_reason_with_sample_ids_and_ties_with_their_keys(lakehouse: Lakehouse) -> None:
    rules = [
        {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"},
        {"expect_column_values_to_not_be_null": {"column": "day"}, "action": "drop", "reason": "no day"},
    ]
    state(lakehouse, expectations=rules)
    lakehouse.specs(bronze_document(columns={**bronze_document()["columns"], "amount": {"type": "string"}}))
    undayed, undated = order(4, "5"), order(5, "-5")
    undayed["day"], undated["event_at"] = None, None
    misfits = [order(6, "many"), order(7, "few: or none")]
    refused = [order(None, "-1"), order(2, "-1"), order(3, "-7"), undayed, undated, *misfits]
    tied = [
        order(1, "5", 3),
        order(1, "6", 3),
        order(12, "7", 3),
        order(12, "7", 3),
        order(13, "1", 2),
        order(14, "1", 2),
    ]
    found = findings(lakehouse, 1, [*tied, *refused])
    assert lakehouse.reports[-1].rows.model_dump(exclude_defaults=True) == {
        "read": 13, "applied": 4, "superseded": 2, "quarantined": 6, "dropped": 1, "inserted": 4
    }  # fmt: skip
    assert tied_keys(found) == ["order_id=o1"]
    misfit = "value does not fit its type: amount is no int"
    counts = {(one.reason, one.action): one.rows for one in found.refused}
    assert counts == {
        ("expect_column_values_to_be_between(amount)", "quarantine"): 4,
        ("expect_column_values_to_not_be_null(order_id): order_id is null", "quarantine"): 1,
        ("expect_column_values_to_not_be_null(event_at): event_at is null", "quarantine"): 1,
        ("expect_column_values_to_not_be_null(day): no day", "drop"): 1,
        (misfit, "quarantine"): 2,
    }
    by_id = {row.id: row for row in lakehouse.waiting(SILVER)}
    for one in found.refused:
        if one.action == "quarantine" and one.reason != misfit:
            assert len(one.samples) == one.rows
            assert all(one.reason in by_id[sample].reasons for sample in one.samples)
    (dropped,) = (one for one in found.refused if one.action == "drop")
    assert dropped.samples == ("orders/date=2013-01-01/given-0.json",)
    # A value that does not fit is named row by row, and counted by column.
    of_rows = {reason for row in by_id.values() for reason in row.reasons if reason.startswith(misfit)}
    assert of_rows == {f"{misfit}: many", f"{misfit}: few: or none"}
    stored = {one.reason: one.rows for one in refusals(StoredRows(SILVER, lakehouse.paths))}
    assert stored[misfit] == 2
    # With a row of the table: o13 has another one, o12 the same, and o14 a later one.
    found = findings(lakehouse, 2, [order(13, "2", 2), order(12, "7", 3), order(14, "2", 4)])
    assert tied_keys(found) == ["order_id=o13"]


def test_an_empty_text_is_no_key_and_no_group_of_a_partitioned_table(lakehouse: Lakehouse) -> None:
    bronze, silver, shop = bronze_document(), silver_document(), {"shop": {"type": "string"}}
    keys = {"keys": ["shop", "order_id"], "partitioned_by": ["shop"]}
    groups = {"group_by": {"shop": "o.shop"}, "refresh_by": "shop", "refresh_from": {"o": "shop"}}
    by_shop = gold_document("gold.by_shop", **groups, measures={"orders": "count(*)"}, partitioned_by=["shop"])
    bronze = bronze_document(columns={**bronze["columns"], **shop})
    lakehouse.specs(bronze, silver_document(columns={**silver["columns"], **shop}, **keys), by_shop)
    given(lakehouse, BRONZE, [order(1, 1, shop=""), order(2, 2, shop="x")])
    report = lakehouse.run(SILVER)
    assert (report.rows.applied, report.rows.quarantined) == (1, 1)
    assert lakehouse.rows(SILVER, "shop", "order_id", "amount") == [("x", "o2", 2)]
    (row,) = lakehouse.waiting(SILVER)
    assert "shop is '', which Delta stores as null in a partition column" in row.reasons[0]

    lakehouse.specs({**by_shop, "group_by": {"shop": "substr(o.shop, 2)"}})
    report = lakehouse.run("gold.by_shop")
    assert report.outcome is Outcome.BAD_INPUT, report.message
    assert "gold.by_shop: Delta stores shop = '' as null, because shop is a partition column" in report.message

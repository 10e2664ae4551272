"""Structs, arrays and maps in silver and gold on real Delta: what a plain model in Python says of the same events."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from include.contracts.job.args import Job
from include.errors import Outcome
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse

BRONZE, SILVER, HISTORY, GOLD = "bronze.orders", "silver.orders", "silver.order_history", "gold.cities"
ADDRESS, ITEMS = "struct<city:string,zip:int>", "array<struct<price:decimal(9,2),tags:array<string>>>"
RECEIVED = {
    "order_id": {"nullable": False},
    "seq": {"type": "int"},
    "address": {"type": ADDRESS, "from": "The `Kunde`.address"},
    "items": {"type": ITEMS},
    "counts": {"type": "map<string,struct<n:int>>"},
    "extra": {},
}
STORED = {
    "order_id": {},
    "seq": {"type": "int"},
    "address": {"type": "struct<zip:int,city:string>"},
    "items": {"type": ITEMS},
    "counts": {"type": "map<string,struct<n:int>>"},
    "city": {"from": "address.city"},
    "first_price": {"type": "decimal(9,2)", "from": "get(items, 0).price"},
    "sizes": {"type": "array<int>", "from": "transform(items, item -> size(item.tags))"},
    "extra": {"type": "struct<x:int>"},
}
SETTINGS: dict[str, Any] = {"keys": ["order_id"], "sequence_by": ["seq"], "columns": STORED}
RULES: dict[str, Any] = {
    "expectations": [
        {"expect_sql": "address.zip > 0 OR address.zip IS NULL", "action": "quarantine"},
        {"expect_sql": "size(items) < 10", "action": "fail"},
        {"expect_column_values_to_not_be_null": {"column": "order_id"}, "action": "fail"},
    ]
}
KEYS = ["a.b", "A.B", "größe", "`", "", "a'b\"", "a"]


def orders(chance: random.Random, number: int) -> list[dict[str, Any]]:
    """Events with a null or nothing at every level, empty lists, and keys that differ only in case."""

    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    def an_item() -> Any:
        tags = [maybe(chance.choice(KEYS)) for _ in range(chance.randrange(3))]
        return maybe({"price": maybe(chance.randrange(1000) / 4), "tags": maybe(tags)})

    return [
        {
            "order_id": f"o{chance.randrange(12)}",
            "seq": at,
            "The `Kunde`": maybe(
                {"address": maybe({"city": maybe(chance.choice(["Köln", "Bonn"])), "zip": maybe(chance.randrange(3))})}
            ),
            "items": maybe([an_item() for _ in range(chance.randrange(3))]),
            "counts": maybe(
                {key: maybe({"n": maybe(chance.randrange(2))}) for key in chance.sample(KEYS, chance.randrange(4))}
            ),
            "extra": maybe(json.dumps({"x": chance.randrange(9)})),
        }
        for at in range(number)
    ]


def stored(event: dict[str, Any]) -> tuple[Any, ...]:
    address = (event["The `Kunde`"] or {}).get("address")
    items = event["items"] and [
        item and {"price": None if item["price"] is None else Decimal(f"{item['price']:.2f}"), "tags": item["tags"]}
        for item in event["items"]
    ]
    counts = None if event["counts"] is None else sorted(event["counts"].items())
    first = items[0] if items else None
    sizes = (
        None if items is None else [None if not item or item["tags"] is None else len(item["tags"]) for item in items]
    )
    extra = None if event["extra"] is None else json.loads(event["extra"])
    return (
        event["order_id"], event["seq"], address and {"zip": address["zip"], "city": address["city"]}, items, counts,
        address and address["city"], first and first["price"], sizes, extra,
    )  # fmt: skip


def is_refused(event: dict[str, Any]) -> bool:
    return ((event["The `Kunde`"] or {}).get("address") or {}).get("zip") == 0


def in_reverse(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "counts": event["counts"] and dict(reversed(event["counts"].items()))}


def run(lakehouse: Lakehouse, number: int, *tables: str) -> None:
    for table in tables:
        report = lakehouse.run(table, number)
        assert report.exit_code == 0, report.message
        assert report.rows.are_conserved
        gate = lakehouse.run(table, number, job=Job.QUALITY_GATE)
        assert gate.exit_code == 0, gate.message


def test_events_with_nested_values_end_in_the_states_of_a_plain_model(lakehouse: Lakehouse) -> None:
    gold = gold_document(
        GOLD, group_by={"city": "o.address.city"}, refresh_by="city", refresh_from={"o": "address.city"},
        measures={"orders": "count(*)", "prices": "sort_array(collect_list(get(o.items, 0).price))",
                  "greatest": "max(named_struct('price', o.first_price, 'seq', o.seq))", "by": "map('n', count(*))"},
    )  # fmt: skip
    source = {"landing": "orders", "format": "json"}
    lakehouse.specs(
        bronze_document(source=source, columns=RECEIVED), silver_document(SILVER, **SETTINGS, **RULES),
        silver_document(HISTORY, **SETTINGS, stored_as_scd_type=2, track_history_except_column_list=["seq"]), gold,
    )  # fmt: skip
    events = orders(random.Random(7), 150)
    last_events = {event["order_id"]: event for event in events}.values()
    same = [{**in_reverse(event), "seq": len(events) + at} for at, event in enumerate(last_events)]
    lakehouse.deliver(1, "a.json", events[::2])
    run(lakehouse, 1, BRONZE, SILVER, HISTORY, GOLD)
    again = [in_reverse(event) for event in events[::6]]
    lakehouse.deliver(2, "a.json", [*events[1::2], *again, *same])
    run(lakehouse, 2, BRONZE, SILVER, HISTORY, GOLD)
    events += same
    accepted = [event for event in events if not is_refused(event)]
    assert 0 < len(accepted) < len(events)
    last = {event["order_id"]: stored(event) for event in accepted}
    assert lakehouse.rows(SILVER, *STORED) == sorted(last.values(), key=repr)
    assert not any(report.findings.ties.keys for report in lakehouse.reports), "the order of a map's keys is no content"
    assert len({row["_row_id"] for row in lakehouse.quarantine(SILVER)}) == sum(map(is_refused, [*events, *again]))

    states = sorted((stored(event) for event in events), key=lambda row: row[1])
    begun = [row for at, row in enumerate(states) if previous(states[:at], row) != row[2:]]
    assert len(begun) <= len(states) - len(same)
    periods = lakehouse.rows(HISTORY, *STORED, "__START_AT")
    assert sorted((row[0], row[-1]) for row in periods) == sorted((row[0], row[1]) for row in begun)

    assert lakehouse.run(GOLD, job=Job.TABLE_VERIFY).outcome is Outcome.COMMITTED
    by_city = {row[0]: row[1:] for row in lakehouse.rows(GOLD, "city", "orders", "prices", "greatest", "by")}
    for city, (count, prices, greatest, by) in by_city.items():
        of_city = [row for row in last.values() if row[5] == city]
        assert count == len(of_city) == dict(by)["n"]
        assert prices == sorted(row[6] for row in of_city if row[6] is not None)
        assert greatest["seq"] in {row[1] for row in of_city}


def previous(states: list[tuple[Any, ...]], row: tuple[Any, ...]) -> Any:
    return next((state[2:] for state in reversed(states) if state[0] == row[0]), None)


def test_a_value_that_does_not_fit_waits_in_quarantine_until_it_is_fixed(lakehouse: Lakehouse) -> None:
    source = {"landing": "orders", "format": "json"}
    lakehouse.specs(bronze_document(source=source, columns=RECEIVED), silver_document(**SETTINGS))
    good = {**orders(random.Random(1), 1)[0], "order_id": "o1", "counts": {"b": {"n": 1}, "a": None}}
    lakehouse.deliver(
        1, "a.json", [{**good, "extra": '{"x": "many"}'}, {**good, "order_id": "o2", "extra": '{"x": 1}'}]
    )
    assert lakehouse.run(BRONZE).outcome is Outcome.COMMITTED
    assert lakehouse.run(SILVER).rows.quarantined == 1
    [row] = lakehouse.quarantine(SILVER)
    assert row["reasons"] == ['value does not fit its type: extra is no struct<x:int>: {"x": "many"}']
    lakehouse.specs(silver_document(**{**SETTINGS, "columns": {**STORED, "extra": {"type": "struct<x:string>"}}}))
    report = lakehouse.run(SILVER, 2)
    assert report.outcome is Outcome.BAD_INPUT
    assert "rebuild" in report.message, report.message
    lakehouse.specs(silver_document(**SETTINGS))
    assert lakehouse.replay(SILVER, assign={"extra": "replace(extra, '\"many\"', '2')"}).exit_code == 0
    rows = lakehouse.rows(SILVER, "order_id", "counts", "extra")
    assert rows == [("o1", [("a", None), ("b", {"n": 1})], {"x": 2}), ("o2", [("a", None), ("b", {"n": 1})], {"x": 1})]

"""Structs, arrays and maps in silver on real Delta: what a plain model in Python says of the same events."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from typing import Any

from millrace.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse

BRONZE, SILVER = "bronze.orders", "silver.orders"
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


EVENTS = orders(random.Random(7), 150)
AGAIN = [in_reverse(event) for event in EVENTS[::6]]
"""The same events, whose maps have their entries in the other order."""

LATER = [
    {**in_reverse(event), "seq": len(EVENTS) + at}
    for at, event in enumerate({event["order_id"]: event for event in EVENTS}.values())
]
"""Later events of each key that change nothing."""

SOURCE = {"landing": "orders", "format": "json", "max_files_per_batch": 1}


MISFIT = {
    **orders(random.Random(1), 1)[0],
    **{"order_id": "misfit", "The `Kunde`": None, "counts": {"b": {"n": 1}, "a": None}, "extra": '{"x": "many"}'},
}


def test_events_with_nested_values_end_in_the_states_of_a_plain_model_and_a_misfit_waits_until_it_is_fixed(
    lakehouse: Lakehouse,
) -> None:
    of_bronze = bronze_document(source=SOURCE, columns=RECEIVED)
    lakehouse.specs(of_bronze, silver_document(**SETTINGS, **RULES, max_rows_per_batch=1))
    lakehouse.deliver(1, "a.json", [*EVENTS[::2], MISFIT])
    lakehouse.deliver(1, "b.json", [*EVENTS[1::2], *AGAIN, *LATER])
    for report in lakehouse.run_all(1, BRONZE, SILVER):
        assert report.exit_code == 0, report.message
        assert " batches, " in report.message, "each file is one of its own"
        assert report.certified_version == report.version
        assert not report.findings.ties.keys, "the order of a map's entries is no other state"
    accepted = [event for event in [*EVENTS, *LATER] if not is_refused(event)]
    assert 0 < len(accepted) < len(EVENTS)
    last = {event["order_id"]: stored(event) for event in accepted}
    assert lakehouse.rows(SILVER, *STORED) == sorted(last.values(), key=repr)

    [misfit] = [row for row in lakehouse.waiting(SILVER) if "misfit" in row.record]
    assert misfit.reasons == ('value does not fit its type: extra is no struct<x:int>: {"extra.x":"many"}',)
    assert len(lakehouse.waiting(SILVER)) > 1
    lakehouse.specs(silver_document(**{**SETTINGS, "columns": {**STORED, "extra": {"type": "struct<x:string>"}}}))
    report = lakehouse.run(SILVER)
    assert report.outcome is Outcome.BAD_INPUT
    assert "rebuild" in report.message, report.message
    lakehouse.specs(silver_document(**SETTINGS, **RULES))
    fix = {"extra": "replace(extra, '\"many\"', '2')"}
    assert lakehouse.replay(SILVER, assign=fix, rows={"ids": [misfit.id]}).rows.applied == 1
    rows = {key: values for key, *values in lakehouse.rows(SILVER, "order_id", "counts", "extra")}
    assert rows["misfit"] == [[("a", None), ("b", {"n": 1})], {"x": 2}]

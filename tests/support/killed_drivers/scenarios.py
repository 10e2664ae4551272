"""Batches of every kind, before which a lakehouse is prepared, and the places at which their drivers die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millrace.cli.replay import record_replays, replays
from millrace.contracts.job.requests import QuarantineRequest
from millrace.errors import ExitCode, Outcome
from millrace.settings import Settings
from tests.support.documents.specs import Document, bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.killed_drivers import places as at
from tests.support.killed_drivers.steps import Step, steps_of
from tests.support.lakehouse import Lakehouse, order
from tests.support.silver import enriched_orders as enriched
from tests.support.silver import known_customers as known
from tests.support.silver.two_shops import BRANCH, WEB, ShopEvent, two_shops

BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")
OP: Document = {"columns": {**bronze_document()["columns"], "op": {"type": "string"}}}
DELETES: Document = {"apply_as_deletes": "op = 'delete'"}
BOUNDS = {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0, "max_value": 99}}
WITHIN_BOUNDS = {"expectations": [{**BOUNDS, "action": "quarantine"}]}

OF_EACH_KIND = {"inserted": 1, "updated": 1, "deleted": 1}
LOADED = {"read": 3, "applied": 2, "quarantined": 1, "inserted": 2}
OF_FILES = tuple(place for place in at.FILE_PLACES if place not in (at.BEFORE_INTENT, at.IN_THE_WRITE))
OF_COLUMNS = (*OF_FILES[:2], at.COLUMNS_RECORDED, at.COLUMNS_ADDED, *OF_FILES[2:])
OF_SILVER, OF_GOLD = (tuple(steps_of(table)) for table in (SILVER, GOLD))
BEFORE_COMMIT_OF_REPLAY = (at.FIXES_RECORDED, at.BEFORE_PINNING, at.ROWS_PINNED, Step.INTENT)
AFTER_COMMIT_OF_REPLAY = (at.REFUSALS_RECORDED, at.OUTCOME_RECORDED, Step.CLOSED, Step.CERTIFICATE)


@dataclass(frozen=True)
class Scenario:
    """A batch whose drivers die.

    Attributes:
        prepare: fills an empty lakehouse with all that is there before the batch.
        table: the table that it is written to.
        content: the rows of the table after it: (order, amount), or what `columns` names.
        places: where its drivers die, in the order in which a job comes there.
        rows: the counts of its report, if nobody dies; None for any.
        request: the replay of quarantined rows that it is; None for a run of the table.
    """

    prepare: Callable[..., None]
    table: str
    content: list[tuple[Any, ...]]
    places: tuple[str, ...]
    columns: tuple[str, ...] = ("order_id", "amount")
    rows: dict[str, int] | None = None
    request: QuarantineRequest | None = None


SCENARIOS: dict[str, Scenario] = {}
"""Name -> scenario. Together they have every kind of row that can be lost."""


def _scenario(*batch: Any, **more: Any) -> Callable[[Callable[..., None]], None]:
    def add(prepare: Callable[..., None]) -> None:
        SCENARIOS[prepare.__name__.replace("_", " ")] = Scenario(prepare, *batch, **more)

    return add


def ended(number: int, hour: int, of_day: int = 1) -> dict[str, Any]:
    """Return the end of an order."""
    return order(number, None, hour, of_day=of_day, op="delete")


@_scenario(
    BRONZE,
    [("o1", 5), ("o2", 7), ("o4", 1)],
    (*OF_FILES[:-1], Step.CERTIFICATE, at.BEFORE_REPORT),
    rows={"read": 6, "applied": 3, "quarantined": 3, "inserted": 3},
)
def first_file(shop: Lakehouse) -> None:
    shop.specs(bronze_document(**OP, **WITHIN_BOUNDS))
    orders = [order(1, 5, 8), order(2, 7, 8), order(3, -1, 8), order(4, 1, 8)]
    shop.deliver(1, "a.json", ["{broken", *orders, "not json either"])


@_scenario(
    SILVER,
    [("o1", 6), ("o4", 1), ("o5", 3)],
    OF_SILVER,
    rows={"read": 6, "applied": 3, "unchanged": 1, "superseded": 1, "quarantined": 1, **OF_EACH_KIND},
)
def merge(shop: Lakehouse) -> None:
    shop.specs(bronze_document(**OP), silver_document(**WITHIN_BOUNDS, **DELETES))
    given(shop, BRONZE, [order(1, 5, 8), order(2, 7, 8), order(3, -1, 8), order(4, 1, 8)])
    shop.run(SILVER)
    changed = [order(1, 6, 9, of_day=2), ended(2, 9, 2), order(5, 3, 1, of_day=2)]
    given(shop, BRONZE, [*changed, order(6, -4, 1, of_day=2), order(4, 1, 8), order(1, 2, 3)])


@_scenario(
    GOLD,
    [(1, 1), (2, 9)],
    OF_GOLD,
    columns=("orders", "revenue"),
    rows={"read": 2, "applied": 2, "inserted": 1, "updated": 1},
)
def groups(shop: Lakehouse) -> None:
    once = {"expect_column_values_to_be_unique": {"column": "day"}, "action": "fail"}
    shop.specs(bronze_document(**OP), silver_document(**DELETES), gold_document(expectations=[once]))
    given(shop, SILVER, [order(1, 5, 8), order(2, 7, 8), order(4, 1, 8)])
    shop.run(GOLD)
    given(shop, SILVER, [order(1, 6, 9, of_day=2), ended(2, 9, 2), order(5, 3, 1, of_day=2)])


@_scenario(
    SILVER,
    [("o1", 4), ("o1", 5), ("o1", 6), ("o2", 7), ("o3", 1), ("o3", 9), ("o4", 2), ("o5", 1)],
    OF_SILVER,
)
def history(shop: Lakehouse) -> None:
    periods = {"sequence_by": ["event_at"], "except_column_list": ["event_at", "event_seq", "day"]}
    shop.specs(bronze_document(**OP), silver_document(stored_as_scd_type=2, **WITHIN_BOUNDS, **DELETES, **periods))
    given(shop, BRONZE, [order(1, 5, 2), order(2, 7, 2), order(3, 1, 2), ended(3, 4), ended(4, 6)])
    shop.run(SILVER)
    late = [order(1, 4, 1), order(3, 9, 3), order(4, 2, 5), order(5, 1, 1), ended(5, 3)]
    given(shop, BRONZE, [order(1, 6, 9), ended(2, 8), order(6, -1, 1), *late])


@_scenario(
    BRONZE,
    [("o1", 3), ("o1", 4), ("o2", 8), ("o4", 9), ("o5", 2), ("o5", None), ("o6", 1), ("o7", -2)],
    OF_FILES,
)
def replaced_file(shop: Lakehouse, *tables: str) -> None:
    source = {**bronze_document()["source"], "on_changed_file": "replace"}
    shop.specs(bronze_document(source=source, **OP), silver_document(**WITHIN_BOUNDS, **DELETES))
    shop.deliver(1, "a.json", [order(1, 5, 8), order(2, 7, 8), order(3, -1, 8), ended(4, 9), "{broken"])
    shop.deliver(1, "b.json", [order(1, 3, 7), order(4, 9, 8), order(5, 2, 1)])
    shop.run_all(1, BRONZE, *tables)
    changed = [order(1, 4, 6), order(2, 8, 6), ended(5, 2), order(6, 1, 1), order(7, -2, 1)]
    shop.deliver(1, "a.json", [*changed, "{also broken"])


@_scenario(SILVER, [("o1", 3), ("o2", 8), ("o4", 9), ("o6", 1)], OF_SILVER)
def keys_of_a_replaced_file(shop: Lakehouse) -> None:
    SCENARIOS["replaced file"].prepare(shop, SILVER)
    shop.run(BRONZE)


@_scenario(
    enriched.ENRICHED,
    [("o1", 7, "firm"), ("o3", 5, "vip"), ("o4", 5, "firm"), ("o5", 5, None), ("o9", 1, "vip")],
    OF_GOLD,
    columns=("order_id", "amount", "segment"),
)
def query_over_silver_tables(shop: Lakehouse) -> None:
    shop.specs(*enriched.enriched_orders())
    event, customer = enriched.order_row, enriched.customer_row
    given(shop, enriched.ORDERS, [event(number, 5, number % 3, 1) for number in range(1, 6)])
    given(shop, enriched.CUSTOMERS, [customer(0, "home", 1), customer(1, "firm", 1)])
    shop.run(enriched.ENRICHED)
    given(shop, enriched.ORDERS, [event(1, 7, 1, 2), event(2, 0, 2, 2, gone=True), event(9, 1, 0, 2)])
    given(shop, enriched.CUSTOMERS, [customer(0, "vip", 2)])


@_scenario(
    SILVER,
    [("o1", 6, BRANCH), ("o3", 5, BRANCH), ("o5", 9, WEB)],
    OF_SILVER,
    columns=("order_id", "amount", "shop"),
    rows={"read": 6, "applied": 3, "superseded": 1, "quarantined": 2, **OF_EACH_KIND},
)
def two_sources(shop: Lakehouse) -> None:
    shop.specs(*two_shops())
    given(shop, WEB, [ShopEvent(WEB, 1, 5, 1, 1).row, ShopEvent(WEB, 2, 5, 1, 2).row])
    given(shop, BRANCH, [ShopEvent(BRANCH, 3, 5, 1, 3).row])
    shop.run(SILVER)
    given(shop, WEB, [ShopEvent(WEB, *event).row for event in ((1, 7, 0, 5), (3, -1, 3, 7), (5, 9, 3, 9))])
    given(shop, BRANCH, [ShopEvent(BRANCH, *event).row for event in ((1, 6, 2, 4), (2, None, 2, 6), (4, -2, 3, 8))])


@_scenario(
    known.ORDERS,
    [("o1", 9), ("o2", 2)],
    (at.ROWS_PINNED, Step.INTENT, Step.COMMIT, Step.RECORDED, at.OUTCOME_RECORDED, Step.CLOSED, at.BEFORE_REPORT),
    rows={"read": 2, "applied": 1, "superseded": 1, "inserted": 1},
)
def rows_that_waited(shop: Lakehouse) -> None:
    """The customer of o2 has come, and that of o1's earlier event, which is late; o3 still waits."""
    shop.specs(*known.shop_documents())
    given(shop, known.CUSTOMERS, [known.customer(1, 1)])
    given(shop, BRONZE, [known.order_of(*event) for event in ((1, 1, 9), (1, 2, 1), (2, 2, 2), (3, 3, 3))])
    shop.run(known.ORDERS)
    given(shop, known.CUSTOMERS, [known.customer(2, 2)])


@_scenario(
    SILVER,
    [("o1", 1), ("o2", 30), ("o4", None), ("o5", 5), ("o6", 6), ("o7", 7), ("o8", 8), ("o9", 40)],
    (Step.COMMIT, Step.RECORDED, Step.CLOSED, Step.CERTIFICATE, at.BEFORE_REPORT),
    rows={"read": 4, "applied": 4, "inserted": 1, "updated": 2, "deleted": 1},
)
def figures_of_a_gate(shop: Lakehouse) -> None:
    """An update, a new order, a deleted order and an amount that is gone, which the gate judges by what changed."""
    rules: Document = {
        "expect_column_values_to_be_between": {"column": "amount", "max_value": 100},
        "expect_column_sum_to_be_between": {"column": "amount", "max_value": 900},
        "expect_column_min_to_be_between": {"column": "amount", "min_value": 0},
        "expect_column_values_to_not_be_null": {"column": "amount", "mostly": 0.5},
        "expect_column_values_to_be_unique": {"column": "order_id"},
        "expect_table_row_count_to_be_between": {"min_value": 2},
    }
    of_gate = [{name: arguments, "action": "fail"} for name, arguments in rules.items()]
    shop.specs(bronze_document(**OP), silver_document(expectations=of_gate, **DELETES))
    given(shop, BRONZE, [order(number, number, 8) for number in range(1, 9)])
    shop.run(SILVER)
    given(shop, BRONZE, [order(2, 30, 9, seq=2), order(9, 40, 9), ended(3, 9), order(4, None, 9, seq=2)])


@_scenario(
    BRONZE,
    [("o1", None, None), ("o2", "red", None), ("o3", None, "8")],
    OF_COLUMNS,
    columns=("order_id", "colour", "shop"),
    rows=LOADED,
)
def new_columns(shop: Lakehouse, **policy: str) -> None:
    shop.specs(bronze_document(on_drift="evolve", **policy))
    given(shop, BRONZE, [order(1, 5)])
    shop.deliver(1, "b.json", [order(2, 6, colour="red"), "{broken", order(3, 7, shop=8)])


@_scenario(
    BRONZE,
    [("o1", None), ("o2", '{"colour":"red"}'), ("o3", '{"shop":"8"}')],
    (Step.COMMIT, Step.QUARANTINE, at.COLUMNS_RECORDED, at.FILES_LOADED),
    columns=("order_id", "_rescued"),
    rows=LOADED,
)
def proposed_columns(shop: Lakehouse) -> None:
    SCENARIOS["new columns"].prepare(shop, evolve="ask")


REQUEST = QuarantineRequest(
    assign={"amount": "abs(amount)", "event_at": "coalesce(event_at, timestamp'2013-01-01 09:00:00')"}, said_by="ann"
)
REFUSED = [
    *(order(1, -5, 8), order(2, 7, 9), order(2, -6, 8), order(3, -1000, 8), order(4, 4, 8)),
    {**order(4, None, op="delete"), "event_at": None},
    {**order(5, -5, 8), "order_id": None},
]
"""For silver: to be inserted, late for o2, still out of bounds, a delete without its time, one that has no key."""


@_scenario(
    BRONZE,
    [("o1", 5), ("o2", 6), ("o2", 7), ("o4", 4), ("o4", None), (None, 5)],
    (*BEFORE_COMMIT_OF_REPLAY, Step.COMMIT, Step.RECORDED, *AFTER_COMMIT_OF_REPLAY),
    rows={"read": 5, "applied": 3, "quarantined": 2, "inserted": 3},
    request=REQUEST,
)
def replay_of_bronze_rows(shop: Lakehouse) -> None:
    shop.specs(bronze_document(**OP, **WITHIN_BOUNDS))
    shop.deliver(1, "a.json", [*REFUSED, "{broken"])
    shop.run(BRONZE)


@_scenario(
    SILVER,
    [("o1", 5), ("o2", 7)],
    (*BEFORE_COMMIT_OF_REPLAY, Step.COMMIT, Step.RECORDED, Step.TOMBSTONES, *AFTER_COMMIT_OF_REPLAY),
    rows={"read": 5, "applied": 2, "superseded": 1, "quarantined": 2, "inserted": 1, "deleted": 1},
    request=REQUEST,
)
def replay_of_silver_rows(shop: Lakehouse) -> None:
    shop.specs(bronze_document(**OP), silver_document(**DELETES, **WITHIN_BOUNDS))
    given(shop, BRONZE, REFUSED)
    shop.run(SILVER)


@_scenario(
    BRONZE,
    [("o1", 6), ("o2", 7), ("o4", 9)],
    OF_FILES,
    rows=LOADED,
)
def replayed_file(shop: Lakehouse) -> None:
    """A file that was given up, which the spec accepts by now, is replayed, by a command that dies and by the next."""
    of_feed = {"source": {**bronze_document()["source"], "max_attempts_per_file": 2}}
    shop.specs(bronze_document(**of_feed, on_drift="fail"))
    shop.deliver(1, "a.json", [order(2, 7)])
    shop.deliver(1, "c.json", [order(1, 6, colour="red"), "{broken", order(4, 9)])
    for _ in range(2):
        assert shop.run(BRONZE).exit_code is ExitCode.BAD_INPUT
    shop.specs(bronze_document(**of_feed, on_drift="rescue"))
    assert shop.run(BRONZE).outcome is Outcome.NO_OP, "it is given up"
    settings = Settings(root=shop.folder / "lake", tables=shop.folder / "tables")
    for planned in [replays(["orders/date=2013-01-01/c.json"], settings)] * 2:
        record_replays(planned, settings)

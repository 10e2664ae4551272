"""Gold tables of orders and products of every kind, each with a model of dicts and lists that computes its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tests.support.documents.specs import Document, gold_document

States = Mapping[str, tuple[tuple[int, int], tuple[int | None, str | None]]]
"""Key -> (hour and number of its last event, its values): amount and product of an order, price and kind of a product.

These are the rows of `LastStates`, in the columns `amount` and `note`.
"""

HOURLY, PLACES, RECENT, KINDS = TABLES = "gold.hourly", "gold.places", "gold.recent", "gold.kinds"
COLUMNS = {
    HOURLY: ("event_at", "kind", "orders", "total"),
    PLACES: ("product", "order_id", "place"),
    RECENT: ("hour", "recent"),
    KINDS: ("kind", "orders", "total"),
}
MOST = {"most": "max(o.amount)"}
"""A further measure of the first table."""

HOURS_BACK = 3
HOUR = "date_trunc('hour', {})"
Row = tuple[Any, ...]


def gold_documents(join: str, measures: Mapping[str, str]) -> list[Document]:
    """Return the specs: groups with a lookup, a query with a window, a lookback, and gold on gold.

    Args:
        join: how products are joined to the orders, `inner` or `left`.
        measures: further measures of the first table.
    """
    orders = {"table": "silver.orders"}
    products = {"table": "silver.products", "join": join, "on": "p.order_id = o.note", "lookup": True}
    hour, frame = HOUR.format("o.event_at"), f"range between interval {HOURS_BACK} hours preceding and current row"
    return [
        gold_document(
            HOURLY,
            sources={"o": orders, "p": products},
            refresh_by="event_at",
            refresh_from={"o": "event_at"},
            group_by={"event_at": "o.event_at", "kind": "p.note"},
            measures={"orders": "count(*)", "total": "sum(o.amount * p.amount)", **measures},
        ),
        {
            "table": PLACES,
            "sources": {"o": orders},
            "query": "SELECT note AS product, order_id, "
            "rank() OVER (PARTITION BY note ORDER BY amount DESC, order_id) AS place FROM o",
        },
        gold_document(
            RECENT,
            sources={"o": orders},
            refresh_by="hour",
            refresh_from={"o": HOUR.format("event_at")},
            group_by={"hour": hour},
            measures={"recent": f"sum(count(*)) over (order by {hour} {frame})"},
            lookback=f"{HOURS_BACK} hours",
        ),
        gold_document(
            KINDS,
            sources={"h": {"table": HOURLY}},
            refresh_by="kind",
            refresh_from={"h": "kind"},
            group_by={"kind": "h.kind"},
            measures={"orders": "sum(h.orders)", "total": "sum(h.total)"},
        ),
    ]


def right_rows(orders: States, products: States, join: str, *, has_most: bool) -> dict[str, list[Row]]:
    """Return table -> the rows that it must have, an hour as a number."""
    hourly = list(_hourly(orders, products, join))
    rows: dict[str, Iterable[Row]] = {
        HOURLY: hourly if has_most else [row[:-1] for row in hourly],
        PLACES: _places(orders),
        RECENT: _recent(orders),
        KINDS: _kinds(hourly),
    }
    return {table: sorted(of_table, key=repr) for table, of_table in rows.items()}


def _hourly(orders: States, products: States, join: str) -> Iterator[Row]:
    groups = defaultdict[Row, list[tuple[int | None, int | None]]](list)
    for (hour, _), (amount, product) in orders.values():
        matched = products.get(product or "")
        if matched or join == "left":
            price, kind = matched[1] if matched else (None, None)
            groups[hour, kind].append((amount, price))
    for group, pairs in groups.items():
        totals = [None if None in pair else pair[0] * pair[1] for pair in pairs]  # type: ignore[operator]
        most = max((amount for amount, _ in pairs if amount is not None), default=None)
        yield (*group, len(pairs), _total(totals), most)


def _places(orders: States) -> Iterator[Row]:
    products = defaultdict[str | None, list[Row]](list)
    for key, (_, (amount, product)) in orders.items():
        products[product].append((amount is None, -(amount or 0), key))
    for product, ordered in products.items():
        for place, (*_, key) in enumerate(sorted(ordered), start=1):
            yield product, key, place


def _recent(orders: States) -> Iterator[Row]:
    hours = [hour for (hour, _), _ in orders.values()]
    for hour in set(hours):
        yield hour, sum(hour - HOURS_BACK <= other <= hour for other in hours)


def _kinds(hourly: Iterable[Row]) -> Iterator[Row]:
    kinds = defaultdict[str | None, list[Row]](list)
    for _, kind, *measures in hourly:
        kinds[kind].append(tuple(measures))
    for kind, rows in kinds.items():
        yield kind, sum(orders for orders, *_ in rows), _total(total for _, total, _ in rows)


def _total(values: Iterable[int | None]) -> int | None:
    """Return the sum as SQL computes it: without nulls, and null if there is nothing else."""
    numbers = [value for value in values if value is not None]
    return sum(numbers) if numbers else None

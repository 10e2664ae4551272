"""Random gold specs of every kind, each with the query by which DuckDB computes its rows from the same sources."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.support.documents.specs import Document, gold_document, query_document

Kind = Callable[[Random], tuple[Document, str]]
"""Makes a random gold spec, and the query by which DuckDB computes its rows."""


def lookback_of_windows(random: Random) -> tuple[Document, str]:
    days, where = random.randint(1, 4), random.choice(("amount > 0", "true"))
    aggregate = random.choice(("sum(count(*))", "max(sum(o.amount))", "count(sum(o.amount))"))
    partition = random.choice(("", "partition by o.product "))
    frame = f"range between interval {days} days preceding and current row"
    document = gold_document(
        "gold.windows",
        sources={"o": {"table": "silver.orders", "where": where}},
        group_by={"day": "o.day", "product": "o.product"},
        measures={"orders": "count(*)", "recent": f"{aggregate} over ({partition}order by o.day {frame})"},
        lookback=f"{days + random.randint(0, 1)} days",
    )
    over = f"{partition}ORDER BY day NULLS FIRST RANGE BETWEEN INTERVAL {days} DAYS PRECEDING AND CURRENT ROW"
    inner = {"sum(count(*))": "sum(n)", "max(sum(o.amount))": "max(total)", "count(sum(o.amount))": "count(total)"}
    query = f"""
        SELECT day, product, n, {inner[aggregate]} OVER ({over.replace("o.", "")}) FROM (
            SELECT day, product, count(*) AS n, sum(amount) AS total FROM orders
            WHERE {where} GROUP BY ALL)
    """
    return document, query


def lookback_of_hours(random: Random) -> tuple[Document, str]:
    hours, grain = random.randint(1, 30), random.choice(("hour", "day", "week"))
    frame = f"range between interval {hours} hours preceding and current row"
    document = gold_document(
        "gold.hours",
        sources={"o": {"table": "silver.orders"}},
        refresh_by="start",
        refresh_from={"o": f"date_trunc('{grain}', at)"},
        group_by={"start": f"date_trunc('{grain}', o.at)"},
        measures={"recent": f"sum(count(*)) over (order by date_trunc('{grain}', o.at) {frame})"},
        lookback=f"{hours} hours",
    )
    query = f"""
        SELECT start, sum(n) OVER (ORDER BY start NULLS FIRST {frame})
        FROM (SELECT date_trunc('{grain}', "at") AS start, count(*) AS n FROM orders GROUP BY ALL)
    """
    return document, query


def lookback_of_join(random: Random) -> tuple[Document, str]:
    days, join = random.randint(1, 3), random.choice(("inner", "left"))
    document = gold_document(
        "gold.active",
        sources={
            "o": {"table": "silver.orders"},
            "h": {
                "table": "silver.orders",
                "join": join,
                "on": f"h.day between date_sub(o.day, {days}) and o.day",
                "where": random.choice(("amount > 0", "true")),
            },
            "p": {"table": "silver.products", "join": "left", "on": "p.product = h.product", "lookup": True},
        },
        refresh_from={"o": "day", "h": "day"},
        measures={"products": "count(distinct h.product)", "kinds": "count(distinct p.kind)"},
        lookback=f"{days} days",
    )
    query = f"""
        SELECT o.day, count(DISTINCT h.product), count(DISTINCT p.kind) FROM orders o
        {join} JOIN (FROM orders WHERE {document["sources"]["h"]["where"]}) h ON h.day BETWEEN o.day - {days} AND o.day
        LEFT JOIN products p ON p.product = h.product GROUP BY o.day
    """
    return document, query


def running_total(random: Random) -> tuple[Document, str]:
    value = random.choice(("day", "at", "id", "product"))
    document = gold_document(
        "gold.running",
        sources={"o": {"table": "silver.orders"}},
        refresh_by="value",
        refresh_from={"o": value},
        group_by={"value": f"o.{value}"},
        measures={"orders": "count(*)", "total": f"sum(sum(o.amount)) over (order by o.{value})"},
        lookback="unbounded",
    )
    query = f"""
        SELECT value, n, CAST(sum(total) OVER (ORDER BY value NULLS FIRST) AS BIGINT)
        FROM (SELECT "{value}" AS value, count(*) AS n, sum(amount) AS total FROM orders GROUP BY ALL)
    """
    return document, query


def rolling_query(random: Random) -> tuple[Document, str]:
    days = random.randint(1, 3)
    query = f"""
        WITH days AS (SELECT day, product, count(*) AS n FROM o GROUP BY day, product),
        sums AS (SELECT day, product, n, sum(n) OVER (PARTITION BY product ORDER BY day
                 RANGE BETWEEN INTERVAL {days} DAYS PRECEDING AND CURRENT ROW) AS recent FROM days)
        SELECT s.day, s.product, s.recent, max(o.amount) AS most FROM sums AS s
        LEFT JOIN o ON o.day >= s.day - INTERVAL 1 DAY AND o.day <= s.day
        GROUP BY s.day, s.product, s.recent
    """
    document = query_document("gold.rolling", query=query, refresh_by="day", lookback=f"{days} days")
    return document, query.replace(" o ON", " orders AS o ON").replace("FROM o ", "FROM orders ").replace(
        "ORDER BY day", "ORDER BY day NULLS FIRST"
    )


def by_day(random: Random) -> tuple[Document, str]:
    join = random.choice(("inner", "left"))
    document = gold_document(
        "gold.daily",
        sources={
            "o": {"table": "silver.orders"},
            "p": {"table": "silver.products", "join": join, "on": "p.product = o.product", "lookup": True},
        },
        group_by={"day": "o.day", "kind": "p.kind"},
        measures={"orders": "count(*)", "total": "sum(o.amount * p.price)"},
    )
    query = f"""
        SELECT day, kind, count(*), CAST(sum(amount * price) AS BIGINT) FROM orders o
        {join} JOIN products p ON p.product = o.product GROUP BY day, kind
    """
    return document, query


def running_months(random: Random) -> tuple[Document, str]:
    _, query = by_day(random)
    document = gold_document(
        "gold.months",
        sources={"d": {"table": "gold.daily"}},
        refresh_by="month",
        refresh_from={"d": "trunc(day, 'MM')"},
        group_by={"month": "trunc(d.day, 'MM')"},
        measures={"so_far": "sum(sum(d.orders)) over (order by trunc(d.day, 'MM'))"},
        lookback="unbounded",
    )
    query = """
        SELECT month, CAST(sum(n) OVER (ORDER BY month NULLS FIRST) AS BIGINT)
        FROM (SELECT date_trunc('month', day)::date AS month, sum(orders) AS n FROM daily GROUP BY ALL)
    """
    return document, query


def state_of_each_day(random: Random) -> tuple[Document, str]:
    document = gold_document(
        "gold.owners_daily",
        sources={
            "d": {"table": "gold.days"},
            "h": {
                "table": "silver.owners",
                "join": "inner",
                "on": "h.valid_from <= d.day and (h.valid_to is null or h.valid_to > d.day)",
                "lookup": True,
            },
        },
        refresh_from={"d": "day"},
        group_by={"day": "d.day", "owner": "h.owner"},
        measures={"products": "count(*)"},
    )
    query = """
        SELECT d.day, h.owner, count(*) FROM (SELECT DISTINCT day FROM orders) d
        JOIN owners h ON h.valid_from <= d.day AND (h.valid_to IS NULL OR h.valid_to > d.day) GROUP BY ALL
    """
    return document, query


def days(random: Random) -> tuple[Document, str]:
    document = gold_document("gold.days", group_by={"day": "o.day"}, measures={"orders": "count(*)"})
    return document, "SELECT day, count(*) FROM orders GROUP BY day"


def last_of_each_day(random: Random) -> tuple[Document, str]:
    query = """
        SELECT day, sum(amount) AS total
        FROM (SELECT day, product, max_by(amount, struct(at, id)) AS amount FROM o GROUP BY day, product) GROUP BY day
    """
    expected = """
        SELECT day, CAST(sum(amount) AS BIGINT) FROM (
            SELECT day, product, amount FROM orders QUALIFY
            row_number() OVER (PARTITION BY day, product ORDER BY "at" DESC NULLS LAST, id DESC, amount DESC) = 1)
        GROUP BY day
    """
    return query_document("gold.balances", query=query, refresh_by="day"), expected


def windows_of_time(random: Random) -> tuple[Document, str]:
    def buckets(hours: int, before: int = 0) -> str:
        return f'SELECT time_bucket(INTERVAL {hours} HOURS, "at") - INTERVAL {before} HOURS AS start, id FROM orders'

    window, starts = random.choice(
        (
            ("window(at, '6 hours')", buckets(6)),
            ("window(at, '6 hours', '3 hours')", f"{buckets(3)} UNION ALL {buckets(3, before=3)}"),
            (
                "session_window(at, '150 minutes')",
                """
                SELECT max(begun) OVER (ORDER BY time, id) AS start, id FROM (
                    SELECT time, id, CASE WHEN time - lag(time) OVER (ORDER BY time, id) < INTERVAL 150 MINUTES
                    THEN NULL ELSE time END AS begun FROM (SELECT "at" AS time, id FROM orders WHERE "at" IS NOT NULL))
                """,
            ),
        )
    )
    spark = f"SELECT {window}.start AS start, count(*) AS n, max(id) AS last FROM o GROUP BY 1"
    document = query_document("gold.windows_of_time", query=spark)
    return document, f"SELECT start, count(*), max(id) FROM ({starts}) WHERE start IS NOT NULL GROUP BY start"


KINDS_OF_GOLD: tuple[Kind, ...] = (
    lookback_of_windows, lookback_of_hours, lookback_of_join, running_total, rolling_query, last_of_each_day,
    windows_of_time,
)  # fmt: skip
"""Tables of silver; `tests/spark/layers/gold/test_query_rows.py` has further forms of query."""

WITH_GOLD: tuple[Kind, ...] = (by_day, running_months, days, state_of_each_day)
"""Tables that read tables before them."""

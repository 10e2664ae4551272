"""Measures of gold tables that need a rule of Spark."""

from __future__ import annotations

READING_A_RESULT = [
    "sum(orders)", "max(Orders + o.amount)", "count(*) filter (where orders > 1)", "first(orders) ignore nulls",
    "listagg(orders, ',')", "percentile_cont(0.5) within group (order by orders)", "any(orders > 1)",
    "max_by(o.order_id, orders)", "sum(orders) over ()", "rank() over (order by orders)", "count(distinct orders)",
    "sum(sum(o.amount)) over (order by orders)", "sum(case when orders > 1 then o.amount end)",
]  # fmt: skip
"""Measures that read the measure `orders` within an aggregate or a window, on a source with alias `o`."""

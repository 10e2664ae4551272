"""`lakehouse lineage` says the same as the page, on the command line."""

from __future__ import annotations

import json
import re

from millrace.errors import ExitCode
from tests.support.cli import Lakehouse


def test_a_column_has_what_it_comes_from_where_it_goes_and_what_breaks(lakehouse: Lakehouse) -> None:
    answer = lakehouse("lineage", "silver.orders.amount", "--json")
    items = [(each["relation"], each["table"], each["column"], each["key"]) for each in json.loads(answer.stdout)]
    assert items == [
        ("upstream", "bronze.orders", "amount", ""),
        ("upstream", "orders/date={interval_start:%Y-%m-%d}/*.json", "amount", ""),
        ("downstream", "gold.revenue_daily", "revenue", ""),
        ("breaks", "gold.revenue_daily", "", "measures.revenue"),
    ]
    assert "1 place in 1 spec must change with it; until then these tables are not run: gold.rev" in answer.stderr
    words = " ".join(lakehouse("lineage", "silver.orders.amount").stdout.split())
    assert "Breaks if it is renamed or removed table used as place line text" in words
    assert re.search(r"gold.revenue_daily measure measures.revenue \d+ o.amount", words)
    nothing = lakehouse("lineage", "gold.revenue_daily.orders").stdout
    assert "no place in a spec" in nothing
    assert "No spec names it." in nothing


def test_a_table_has_the_tables_before_and_after_it(lakehouse: Lakehouse) -> None:
    items = json.loads(lakehouse("lineage", "gold.revenue_daily", "--json").stdout)
    assert [(each["relation"], each["steps"], each["table"]) for each in items] == [
        ("upstream", 1, "silver.orders"),
        ("upstream", 2, "bronze.orders"),
    ]
    assert "silver.orders" in lakehouse("lineage", "bronze.orders").stdout


def test_another_table_or_column_is_refused_with_the_closest_name(lakehouse: Lakehouse) -> None:
    odd_names = {"silver.order": "silver.orders", "silver.orders.amuont": "amount", "x": "", "a.b.c.d": ""}
    for odd, meant in odd_names.items():
        answer = lakehouse("lineage", odd)
        assert answer.exit_code == ExitCode.WRONG_USAGE
        assert meant in answer.stderr

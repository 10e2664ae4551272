"""An expression reads the rows that it is given, and nothing else."""

from __future__ import annotations

import pytest

from include.errors import BadInputError
from include.sql.checked_expression import require_no_queries

QUERIES = [
    "amount > (select count(*) from delta.`/lake/silver/customers`)",
    "o.id in (SELECT id FROM silver.customers)",
    "exists (table silver.customers)",
    "o.id in (values (1), (2))",
    "amount > (from delta.`/lake/silver/customers` |> aggregate count(*))",
    "amount > ((with c as (table silver.customers) select 1))",
    "array((select 1))[0]",
]
NO_QUERIES = [
    "extract(day from o.at) > 1",
    "trim(both from o.id) = 'select'",
    "o.`select` > 1",
    "o.select > o.values",
    "sum(values)",
    "substring(id from 2 for 1)",
    "a is distinct from b",
]


@pytest.mark.parametrize("text", QUERIES)
def test_the_driver_refuses_an_expression_with_a_query(text: str) -> None:
    with pytest.raises(BadInputError, match=r"^gold\.x: the expression .* is not run: a query within an expression"):
        require_no_queries("gold.x", ["o.day", text])


def test_the_driver_evaluates_expressions_over_one_row() -> None:
    require_no_queries("gold.x", NO_QUERIES)

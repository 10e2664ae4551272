"""The columns of a query that may depend on the order of rows are found, also through subqueries."""

from __future__ import annotations

import pytest

from include.sql.query.row_order import columns_by_order, functions_with_ties
from include.sql.query.select_query import query_of
from include.sql.query_functions import DEPENDS_ON_ORDER
from include.sql.spark_functions import AGGREGATES, FUNCTIONS

COLUMNS = {"f": ("day", "a", "b"), "g": ("day", "c")}


def found(query: str) -> set[str]:
    return set(columns_by_order(query, COLUMNS))


@pytest.mark.parametrize("name", sorted(DEPENDS_ON_ORDER))
def test_each_of_these_functions_is_found_by_the_name_that_spark_has_for_it(name: str) -> None:
    assert name in FUNCTIONS
    arguments = {"max_by": "a, b", "min_by": "a, b", "approx_percentile": "a, 0.5", "percentile_approx": "a, 0.5",
                 "nth_value": "a, 2"}  # fmt: skip
    call = f"{name}({arguments.get(name, 'a')})"
    query = f"SELECT day, {call if name in AGGREGATES else f'{call} OVER (PARTITION BY day ORDER BY b)'} AS m FROM f"
    assert found(query + (" GROUP BY day" if name in AGGREGATES else "")) == {"m"}


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT day, sum(a) AS n, max(b) AS m FROM f GROUP BY day", set()),
        ("SELECT day, mode(a, true) AS m, max_by(a, struct(b, a)) AS k, sort_array(collect_list(a)) AS l, "
         "max_by(a, struct(b, id)) AS n FROM f GROUP BY day", {"n"}),
        ("SELECT day, m + 1 AS n, k FROM (SELECT day, mode(a) AS m, sum(b) AS k FROM f GROUP BY day)", {"n"}),
        ("WITH x AS (SELECT day, max_by(a, b) AS m FROM f GROUP BY day) SELECT x.day, m, c FROM x JOIN g "
         "ON x.day = g.day", {"m"}),
        ("WITH x AS (SELECT day, max_by(a, b) AS m FROM f GROUP BY day) SELECT x.day, c FROM x JOIN g ON x.m = g.c",
         {"day", "c"}),
        ("SELECT day, a FROM f UNION ALL SELECT day, first(c) AS c FROM g GROUP BY day", {"a"}),
        ("SELECT m, count(*) AS n FROM (SELECT day, mode(a) AS m FROM f GROUP BY day) GROUP BY m", {"m", "n"}),
        ("SELECT day, b FROM f WHERE a > (SELECT mode(c) FROM g)", {"day", "b"}),
        ("SELECT DISTINCT day, m FROM (SELECT day, mode(a) AS m FROM f GROUP BY day)", {"day", "m"}),
        ("SELECT day, sum(a) AS n FROM f GROUP BY day ORDER BY n LIMIT 3", set()),
        ("SELECT day, mode(a) AS m FROM f GROUP BY day ORDER BY m LIMIT 3", {"day", "m"}),
        ("SELECT day, (SELECT first(c) FROM g) AS m FROM f", {"m"}),
    ],
)  # fmt: skip
def test_a_column_is_found_through_subqueries_and_all_are_if_rows_depend_on_it(query: str, expected: set[str]) -> None:
    assert found(query) == expected


def test_functions_that_number_rows_are_named_because_rows_may_tie() -> None:
    query = query_of("SELECT a FROM (SELECT a, row_number() OVER (ORDER BY b) AS n, lag(a) OVER (ORDER BY b) FROM f)")
    assert query.tree is not None
    assert functions_with_ties(query.tree) == ["lag", "row_number"]

"""From which columns of its sources each column of a query comes, in all forms of a query."""

from __future__ import annotations

import pytest

from millrace.sql.query.lineage import places_of_columns, places_of_results

SOURCES = {"f": ("id", "name", "city"), "g": ("name", "id", "town")}

OF_NAME = [
    "SELECT (SELECT max(o.name) FROM f AS o) AS x FROM f",
    "SELECT (SELECT max(y) FROM (SELECT name AS y FROM f) AS o) AS x FROM f",
    "SELECT (SELECT concat(max(g.town), f.name) FROM g WHERE g.id = f.id) AS x FROM f",
    "SELECT exists(SELECT 1 FROM g WHERE g.town = f.name) AS x FROM f",
    "SELECT x FROM f LATERAL VIEW explode(split(name, ' ')) AS x",
    "SELECT t.x FROM f LATERAL VIEW explode(split(name, ' ')) t AS x",
    "SELECT x FROM f, LATERAL explode(split(f.name, ' ')) AS t(x)",
    "SELECT x FROM f, LATERAL (SELECT upper(f.name) AS x)",
    "WITH t(id, x) AS (SELECT id, name FROM f) SELECT x FROM t",
    "SELECT t.x FROM (SELECT id, name FROM f) AS t(id, x)",
    "SELECT name AS y, upper(y) AS x FROM f",
    "(SELECT name AS x FROM f) UNION ALL SELECT town FROM g",
    "(SELECT name AS x FROM f)",
    "SELECT CASE WHEN name > 'a' THEN city END AS x FROM f",
    "SELECT first_value(city) OVER (ORDER BY name) AS x FROM f",
    "FROM f SELECT name AS x",
]


@pytest.mark.parametrize("query", OF_NAME)
def test_a_column_is_followed_through_subqueries_and_what_makes_rows(query: str) -> None:
    places = places_of_columns(query, SOURCES)["x"]
    assert ("f", "name") in {(alias, name) for alias, name, _ in places}


def test_a_function_that_makes_rows_is_no_source() -> None:
    assert places_of_columns("SELECT id AS x FROM range(5)", SOURCES) == {"x": []}


def test_columns_of_a_star_are_followed_if_spark_gives_the_same() -> None:
    found = places_of_results("SELECT * FROM f", SOURCES, ["id", "name", "city"])
    assert [[name for _, name, _ in of_column] for of_column in found or ()] == [["id"], ["name"], ["city"]]
    assert places_of_results("SELECT * FROM f", SOURCES, ["name", "id", "city"]) is None
    assert places_of_results("SELECT * FROM f", SOURCES, ["id", "name"]) is None


def test_a_query_whose_star_sqlglot_cannot_expand_has_no_places() -> None:
    """Spark counts the columns of a star in GROUP BY, even if two have one name; sqlglot fails an assertion."""
    twice = "SELECT f.id, g.id FROM f JOIN g ON f.id = g.id"
    query = f"WITH x AS ({twice}), y AS (SELECT *, count(*) AS n FROM x GROUP BY 1, 2) SELECT n FROM y"
    assert places_of_columns(query, SOURCES) == {}
    assert places_of_results(query, SOURCES, ["n"]) is None


@pytest.mark.parametrize("source", ["f", "(SELECT name, city FROM f)", "d"])
def test_what_unpivot_makes_is_not_followed(source: str) -> None:
    query = f"WITH d AS (SELECT name, city FROM f) SELECT x FROM {source} UNPIVOT (x FOR c IN (name, city))"
    assert places_of_results(query, SOURCES, ["x"]) is None

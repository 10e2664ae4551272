"""A query of a gold table may read its sources, and nothing else; and it gives the same rows in each run."""

from __future__ import annotations

import pytest

from include.errors import BadInputError
from include.sql.query.select_query import SelectQuery, require_read_only

SOURCES = ("f", "w")

ALLOWED = [
    "SELECT f.day, 'today' AS label FROM f, w WHERE f.status = 'now' AND f.day > DATE'epoch'",
    "SELECT f.day, count(*) AS n FROM f JOIN w USING (day) GROUP BY 1",
    "WITH x AS (SELECT day FROM f UNION SELECT day FROM w) SELECT day FROM x ORDER BY day LIMIT 3",
    "WITH x AS (WITH y AS (SELECT day FROM f) SELECT day FROM y), z AS (SELECT day FROM x) SELECT z.day FROM z, w",
    "SELECT day, first(a) IGNORE NULLS OVER (PARTITION BY day ORDER BY b) AS a FROM f, w",
    "SELECT day, max_by(a, struct(b, id)) AS a, mode(b, true) AS b FROM f, w GROUP BY day",
    "SELECT sort_array(collect_list(a)) AS items, listagg(a, ',') WITHIN GROUP (ORDER BY a) AS t FROM f, w",
    "SELECT f.day, t.part FROM f, w LATERAL VIEW explode(parts) t AS part",
    "SELECT day, n FROM f, w, range(10) AS r (n)",
    "SELECT day, x, y FROM (SELECT day, origin, a FROM f, w) PIVOT (sum(a) FOR origin IN ('x' AS x, 'y' AS y))",
    "SELECT /*+ broadcast(w) */ f.current_date AS day, 'rand()' AS t FROM f, w -- now()",
    "SELECT day, ';' AS n FROM f, w; ; -- the end;",
    "SELECT window(day, '1 hour').start AS h, count(*) AS n FROM f, w GROUP BY window(day, '1 hour')",
    "SELECT day, a, rank() OVER w AS n FROM f, w QUALIFY n < 3 WINDOW w AS (PARTITION BY day ORDER BY a)",
    "SELECT abs(a) AS a, system.builtin.abs(day) AS day FROM f, w",
    "SELECT `Day` AS day, named_struct('a', 1).a AS a FROM F, W",
]

REFUSED = [
    ("SELECT * FROM f, w", "not named"),
    ("SELECT day, a + 1 FROM f, w", "has no name"),
    ("SELECT day, cast(a AS int) FROM f, w", "has no name"),
    ("SELECT day AS Day FROM f, w", "not a valid name"),
    ("SELECT a AS x, b AS x FROM f, w", "two columns have the name"),
    ("SELECT day FROM f", "does not read the source 'w'"),
    ("SELECT day FROM f, w, g", "g is not the alias"),
    ("SELECT day FROM f, w, silver.flights", "not the alias"),
    ("SELECT day FROM f, w WHERE day IN (SELECT value FROM text.`/etc/passwd`)", "not the alias"),
    ("SELECT day FROM f VERSION AS OF 3, w", "chooses the version"),
    ("SELECT day FROM f, w, identifier('silver.x')", "identifier"),
    ("SELECT day FROM f, w, read_files('/etc')", "no source"),
    ("WITH f AS (SELECT 1 AS day) SELECT day FROM f, w", "name of a source"),
    (
        "WITH x AS (SELECT day FROM f), y AS (WITH x AS (SELECT day FROM w) SELECT * FROM x) SELECT day FROM x, y",
        "another",
    ),
    ("WITH x AS (SELECT day FROM x) SELECT x.day FROM x, f, w", "'x' in WITH is read before it is stated"),
    ("SELECT f.day AS order FROM f, w WHERE", "it cannot be read at line 1, column "),
    ("SELECT f.day FROM f NATURAL LEFT JOIN w", "also compares what Millrace adds to each table"),
    ("SELECT day FROM f, w; DROP TABLE x", "more than one statement"),
    ("SELECT (table secrets) AS day FROM f, w", "reads other tables"),
    ("SELECT ';' AS day FROM f; FROM w", "more than one statement"),
    ("FROM f |> SELECT day", "pipe syntax"),
    ("SELECT day FROM f, w QUALIFY rank() OVER (ORDER BY day) = 1 ORDER BY day LIMIT 1", "QUALIFY is not read"),
    ("SELECT day FROM f, w GROUP BY ALL QUALIFY rank() OVER (ORDER BY day) = 1", "QUALIFY is not read"),
    ("FROM f, w SELECT day QUALIFY rank() OVER (ORDER BY day) = 1", "QUALIFY is not read"),
    ("INSERT INTO f SELECT day FROM w", "no query"),
    ("", "no query"),
    ("SELECT TRANSFORM(day) USING 'cat' AS day FROM f, w", "more than read"),
    ("SELECT reflect('java.lang.System', 'getenv', 'X') AS day FROM f, w", "outside"),
    ("SELECT `reflect`('java.lang.System', 'getenv', 'X') AS day FROM f, w", "outside"),
    ("SELECT system.builtin.java_method('java.lang.System', 'exit', 1) AS day FROM f, w", "outside"),
    ("SELECT input_file_name() AS day FROM f, w", "outside"),
    ("SELECT mine(day) AS day FROM f, w", "unknown function"),
    ("SELECT spark_catalog.default.mine(day) AS day FROM f, w", "spark_catalog.default.mine may give other values"),
    ("SELECT spark_catalog.default.ABS(day) AS day FROM f, w", "spark_catalog.default.abs may give other values"),
    ("SELECT rand() AS day FROM f, w", "random"),
    ("SELECT current_date AS day FROM f, w", "clock"),
    ("SELECT now() - INTERVAL 1 DAY AS day FROM f, w", "clock"),
    ("SELECT day FROM f, w WHERE f.day < DATE'today'", "clock"),
    ("SELECT CAST('now' AS TIMESTAMP) AS t FROM f, w", "clock"),
    ("SELECT day FROM f, w WHERE to_date('yesterday') = day", "clock"),
    ("SELECT monotonically_increasing_id() AS day FROM f, w", "splits"),
    ("SELECT current_user AS day FROM f, w", "depends on who"),
    ("SELECT day FROM f TABLESAMPLE (10 PERCENT), w", "TABLESAMPLE"),
    ("SELECT day FROM f, w LIMIT 3", "without ORDER BY"),
    ("SELECT day FROM (SELECT day FROM f LIMIT 3), w ORDER BY day", "without ORDER BY"),
    ("SELECT first(a) AS a FROM f, w", "another row"),
    ("SELECT last_value(a) OVER (PARTITION BY day) AS a FROM f, w", "another row"),
    ("SELECT collect_list(a) AS a FROM f, w", "another order"),
    ("SELECT day, mode(a) AS a FROM f, w GROUP BY day", "most frequent values"),
    ("SELECT day, max_by(a, b) AS a FROM f, w GROUP BY day", "where b is the same"),
    ("SELECT day FROM f, w GROUP BY day HAVING min_by(a, b) > 1", "where b is the same"),
    ("SELECT :day AS day FROM f, w", "no value"),
]


@pytest.mark.parametrize("text", ALLOWED)
def test_a_query_that_reads_its_sources_is_allowed(text: str) -> None:
    assert list(SelectQuery(text).refusals(SOURCES)) == []


@pytest.mark.parametrize(("text", "reason"), REFUSED)
def test_another_query_is_refused_with_the_reason_and_the_driver_refuses_it_too(text: str, reason: str) -> None:
    reasons = [refusal.message for refusal in SelectQuery(text).refusals(SOURCES)]
    assert any(reason in each for each in reasons), reasons
    with pytest.raises(BadInputError, match=r"^gold\.x: the query .* is not run: "):
        require_read_only("gold.x", text, SOURCES)


def test_its_columns_are_those_of_the_first_branch_as_written() -> None:
    text = (
        "WITH x AS (SELECT 1 AS a) SELECT day, sum(a) OVER (ORDER BY day) AS total, f.b FROM f UNION ALL SELECT 1, 2, 3"
    )
    assert SelectQuery(text).columns == ("day", "total", "b")

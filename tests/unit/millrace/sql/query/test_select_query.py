"""Queries may read their sources, and nothing else, and give the same rows in each run."""

from __future__ import annotations

import pytest

from millrace.contracts.spec.expectation import Expectation
from millrace.errors import BadInputError
from millrace.sql.query.row_order import columns_by_order, functions_with_ties
from millrace.sql.query.select_query import SelectQuery, query_of, require_read_only
from millrace.sql.query_functions import DEPENDS_ON_ORDER
from millrace.sql.rule_query import Query
from millrace.sql.spark_functions import AGGREGATES, FUNCTIONS

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
    ("SELECT day, cast(a AS int) FROM f, w", "has no name"),
    ("SELECT day AS Day FROM f, w", "not a valid name"),
    ("SELECT a AS x, b AS x FROM f, w", "two columns have the name"),
    ("SELECT day FROM f", "does not read the source 'w'"),
    ("SELECT day FROM f, w WHERE (is_new)", "Spark takes WHERE (is_new) for a name of the table"),
    ("WITH x AS (SELECT a FROM f, w) SELECT a FROM x AS y JOIN x WHERE (`a`)", "for a name of the table"),
    ("SELECT day FROM f, w, silver.flights", "not the alias"),
    ("SELECT day FROM f, w WHERE day IN (SELECT value FROM text.`/etc/passwd`)", "not the alias"),
    ("SELECT day FROM f VERSION AS OF 3, w", "chooses the version"),
    ("SELECT day FROM f, w, identifier('silver.x')", "identifier"),
    ("SELECT day FROM f, w, read_files('/etc')", "no source"),
    ("WITH f AS (SELECT 1 AS day) SELECT day FROM f, w", "name of a source"),
    ("WITH x AS (FROM f), y AS (WITH x AS (SELECT day FROM w) SELECT * FROM x) SELECT day FROM x, y", "another"),
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
    ("SELECT system.builtin.`java_method`('java.lang.System', 'exit', 1) AS day FROM f, w", "outside"),
    ("SELECT input_file_name() AS day FROM f, w", "outside"),
    ("SELECT mine(day) AS day FROM f, w", "unknown function"),
    ("SELECT spark_catalog.default.ABS(day) AS day FROM f, w", "spark_catalog.default.abs may give other values"),
    ("SELECT rand() AS day FROM f, w", "random"),
    ("SELECT now() - INTERVAL 1 DAY AS day FROM f, w", "clock"),
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


COLUMNS_OF = {"f": ("day", "a", "b"), "g": ("day", "c")}


def found(query: str) -> set[str]:
    return set(columns_by_order(query, COLUMNS_OF))


def test_each_of_these_functions_is_found_by_the_name_that_spark_has_for_it() -> None:
    assert set(FUNCTIONS) >= DEPENDS_ON_ORDER
    arguments = dict.fromkeys(("max_by", "min_by"), "a, b") | {"nth_value": "a, 2"}
    arguments |= dict.fromkeys(("approx_percentile", "percentile_approx"), "a, 0.5")
    for name in sorted(DEPENDS_ON_ORDER):
        call = f"{name}({arguments.get(name, 'a')})"
        of_groups = f"SELECT day, {call} AS m FROM f GROUP BY day"
        of_windows = f"SELECT day, {call} OVER (PARTITION BY day ORDER BY b) AS m FROM f"
        assert found(of_groups if name in AGGREGATES else of_windows) == {"m"}, name


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
    assert functions_with_ties(query.tree) == ["lag", "row_number"]


STORED = ["id", "amount", "xs"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM {table}",
        "FROM {table} WHERE amount < 0",
        "SELECT t.amount.cents FROM {table} t WHERE t.ID RLIKE 'x{2}' -- why",
        "WITH late AS (SELECT id AS k FROM {table}) SELECT k FROM late JOIN {silver.customers} c ON c.id = late.k",
        "SELECT * FROM {table} WHERE exists(xs, x -> x > 1)",
        "SELECT x FROM {table} LATERAL VIEW explode(xs) e AS x",
        "SELECT * FROM {table} UNION ALL SELECT * FROM {silver.customers}",
        "SELECT amount FROM {table} JOIN VALUES (1, 2) AS t(p, q) ON p = id WHERE q > (SELECT max(id) FROM {table})",
        "SELECT _batch_seq FROM {table}",
    ],
)
def test_a_query_that_only_reads_is_accepted(query: str) -> None:
    parsed = Query(query)
    assert (parsed.error, parsed.unknown_functions, parsed.unknown_columns(STORED)) == ("", [], [])


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("", "not one SELECT"),
        ("DROP TABLE {table}", "not one SELECT"),
        ("WITH x AS (SELECT 1) INSERT INTO y SELECT * FROM {table}", "not one SELECT"),
        ("EXPLAIN SELECT * FROM {table}", "not one SELECT"),
        ("SELECT * FROM {table}; DROP TABLE x", "not one SELECT"),
        ("SELECT * FROM {table} WHERE", "cannot be parsed"),
        ("SELECT 'a FROM {table}", "cannot be parsed"),
        ("SELECT 1", "does not read {table}"),
        ("SELECT * FROM {table}, delta.`/etc/passwd`", "it reads delta.`/etc/passwd`"),
        ("SELECT * FROM {table} WHERE id IN (SELECT id FROM customers)", "it reads customers"),
        ("SELECT * FROM {table}, range(5)", "it reads RANGE(5)"),
    ],
)
def test_anything_else_is_refused(query: str, error: str) -> None:
    assert error in Query(query).error


def test_functions_and_columns_that_do_not_exist_are_found() -> None:
    query = Query("SELECT to_dat(t.day) AS day_, amuont FROM {table} t WHERE later.x > 1")
    assert query.unknown_functions == ["to_dat"]
    assert query.unknown_columns(STORED) == ["t.day", "amuont", "later.x"]


def test_a_rule_knows_the_tables_of_its_query() -> None:
    text = "SELECT * FROM {table} JOIN {silver.customers} c USING (id), {gold.x}, {silver.customers} d"
    rule = Expectation.model_validate({"expect_query_to_return_no_rows": {"query": text}, "action": "fail"})
    assert rule.other_tables == ["silver.customers", "gold.x"]
    assert rule.rule == f"expect_query_to_return_no_rows({text})"

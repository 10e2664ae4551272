"""What a column of a query depends on: the traced sources, those that are read whole, or why it cannot be traced."""

from __future__ import annotations

import pytest

from millrace.sql.query.select_query import query_of
from millrace.sql.query.trace import trace
from millrace.sql.spark_functions import AGGREGATES

COLUMNS = {
    "f": ("day", "origin", "amount", "id"),
    "w": ("day", "origin", "temp", "id"),
    "d": ("id", "name"),
    "t": ("day", "window"),
    "s": ("s", "p", "x"),
    "o": ("o", "p"),
}

# Alias -> the values by which its rows are chosen; a star for a source that is read whole.
TRACED = [
    ("SELECT day, name LIKE ANY ('a%', 'b%') AS is_known, id FROM f", {"f": "day"}),
    ("SELECT day, sum(amount) AS n FROM f GROUP BY day", {"f": "day"}),
    ("SELECT day, origin, count(*) AS n FROM f GROUP BY 2, 1", {"f": "day"}),
    ("SELECT day, count(*) AS n FROM f GROUP BY ALL", {"f": "day"}),
    ("SELECT trunc(day, 'MM') AS day, count(*) AS n FROM f GROUP BY day", {"f": "TRUNC(day, 'MM')"}),
    ("SELECT (id + 1) * 2 AS day FROM f", {"f": "(id + 1) * 2"}),
    ("SELECT day, sum(amount) OVER (PARTITION BY origin, day ORDER BY id) AS n FROM f", {"f": "day"}),
    ("SELECT day, sum(amount) OVER w AS n FROM f WINDOW w AS (PARTITION BY day)", {"f": "day"}),
    ("SELECT day, sum(sum(amount)) OVER (PARTITION BY day) AS n FROM f GROUP BY day, origin", {"f": "day"}),
    ("SELECT f.day, w.temp FROM f LEFT JOIN w ON f.origin = w.origin AND w.day = f.day", {"f": "day", "w": "day"}),
    ("SELECT w.day, f.id FROM f JOIN w ON w.day <=> f.day", {"f": "day", "w": "day"}),
    ("SELECT coalesce(f.day, w.day) AS day FROM f FULL JOIN w ON w.day = f.day", {"f": "day", "w": "day"}),
    ("SELECT day, amount, temp FROM f FULL JOIN w USING (day)", {"f": "day", "w": "day"}),
    ("SELECT day FROM f RIGHT JOIN w USING (day) LEFT JOIN t USING (day)", {"f": "day", "w": "day", "t": "day"}),
    (
        "SELECT day FROM f FULL JOIN w USING (day) LEFT JOIN t USING (day)",
        {"f": "day", "w": "day", "t": "COALESCE(f.day, w.day) = t.day"},
    ),
    ("SELECT f.day FROM f, w WHERE f.day = w.day AND w.temp > 3", {"f": "day", "w": "day"}),
    ("SELECT f.day FROM f LEFT ANTI JOIN w ON f.day = w.day AND f.id = w.id", {"f": "day", "w": "day"}),
    ("SELECT w.day FROM w LEFT SEMI JOIN o ON w.day = o.p", {"w": "day", "o": "p"}),
    ("SELECT day FROM f UNION ALL SELECT origin FROM w", {"f": "day", "w": "origin"}),
    ("SELECT id, day FROM f UNION SELECT 1, 2 FROM f", {"f": "day and 2"}),
    ("SELECT 1, day FROM f UNION (SELECT 2, id FROM w EXCEPT SELECT 3, id FROM d)", {"f": "day", "w": "id", "d": "id"}),
    ("SELECT day, x FROM f PIVOT (sum(amount) FOR origin IN ('x' AS x))", {"f": "day"}),
    ("SELECT d + 1 AS day FROM (SELECT day d, id i, origin o FROM f) PIVOT (sum(i) FOR o IN (1))", {"f": "day + 1"}),
    ("SELECT s.p.x AS day, count(*) AS n FROM s GROUP BY s.p.x", {"s": "p['x']"}),
    ("SELECT s.p.q.x AS day, count(*) AS n FROM s GROUP BY p", {"s": "p['q']['x']"}),
    ("SELECT a.p.q.r.T.u AS day FROM s AS a", {"s": "p['q']['r']['T']['u']"}),
    ("SELECT s.x AS day FROM s", {"s": "x"}),
    ("SELECT o.x AS day FROM o", {"o": "o['x']"}),
    ("SELECT p.p.y AS day FROM (SELECT p FROM o) AS p", {"o": "p['y']"}),
    ("SELECT p.y AS day FROM (SELECT named_struct('y', o.x) AS p FROM o) AS p", {"o": "STRUCT(o['x'] AS y)['y']"}),
    ("SELECT o.p.x AS day, f.id FROM o JOIN f ON f.day = o.p.x", {"o": "p['x']", "f": "day"}),
    ("SELECT window.end AS day FROM f GROUP BY window(day, '1 hour')", {"f": "WINDOW(day, '1 hour')['end']"}),
    ("SELECT window(day, '1 hour').start AS day FROM f GROUP BY 1", {"f": "WINDOW(day, '1 hour')['start']"}),
    ("SELECT day, window(amount, '1 hour', '5 minutes').start AS h, count(*) AS n FROM f GROUP BY 1, 2", {"f": "day"}),
    ("SELECT day, session_window(id, '1 hour').start AS s, count(*) AS n FROM f GROUP BY ALL", {"f": "day"}),
    ("SELECT day, x FROM f LATERAL VIEW explode(array(amount)) t AS x", {"f": "day"}),
    ("WITH x AS (SELECT origin AS day, day AS o FROM f) SELECT day FROM x GROUP BY day", {"f": "origin"}),
    ("WITH x (day, o) AS (SELECT origin, day FROM f) SELECT day FROM x", {"f": "origin"}),
    ("SELECT t.day FROM (SELECT id, origin FROM f) AS t (i, day)", {"f": "origin"}),
    ("WITH x AS (SELECT day AS _d FROM f GROUP BY _d) SELECT _d AS day FROM x", {"f": "day"}),
    ("SELECT _batch_seq AS day, count(*) AS n FROM f GROUP BY 1", {"f": "_batch_seq"}),
    ("SELECT f.day FROM f JOIN d ON d._batch_seq = f.id", {"f": "day", "d": "d._batch_seq = f.id"}),
    (
        "WITH x AS (SELECT * FROM f JOIN w USING (day)), y AS (SELECT * FROM x) SELECT day FROM y",
        {"f": "day", "w": "day"},
    ),
    ("SELECT F.DAY AS day FROM f AS F WHERE f.amount > 1", {"f": "day"}),
    ("SELECT a.day FROM f a JOIN f b ON a.day = date_add(b.day, 1)", {"f": "day and DATE_ADD(day, 1)"}),
    ("WITH t AS (SELECT day, avg(id) AS a FROM f GROUP BY ALL) SELECT day, a FROM f JOIN t USING (day)", {"f": "day"}),
    ("SELECT a.day FROM f a JOIN f b ON a.day = b.day JOIN w ON w.day = b.day", {"f": "day", "w": "day"}),
    (
        "SELECT f.day FROM f LEFT JOIN d ON f.day = d.id LEFT JOIN w ON w.id <=> d.id",
        {"f": "day", "d": "id", "w": "w.id <=> d.id"},
    ),
    ("SELECT year(f.day) AS day FROM f LEFT JOIN w ON f.day = w.day GROUP BY 1", {"f": "YEAR(day)", "w": "YEAR(day)"}),
    ("SELECT w.day + w.id AS day FROM f JOIN w ON f.day = w.day AND f.id = w.id", {"f": "day + id", "w": "day + id"}),
    ("SELECT f.day + f.id AS day FROM f JOIN w ON f.day = w.day", {"f": "day + id", "w": "f.day = w.day"}),
    (
        "SELECT abs(a.id) AS day FROM f a LEFT JOIN w ON a.id = w.id LEFT JOIN d ON d.id = abs(w.id)",
        {"f": "ABS(id)", "w": "ABS(id)", "d": "d.id = ABS(w.id)"},
    ),
    ("SELECT f.day FROM d JOIN f ON d.id = f.id", {"f": "day", "d": "d.id = f.id"}),
    ("SELECT f.day FROM f JOIN d ON d.id <=> f.id", {"f": "day", "d": "d.id <=> f.id"}),
    (
        "SELECT f.day FROM f, d, w WHERE d.id = w.id AND w.temp = f.amount",
        {"f": "day", "w": "w.temp = f.amount", "d": "d.id = w.id and w.temp = f.amount"},
    ),
    ("SELECT f.day FROM f LEFT ANTI JOIN w ON f.id = w.id", {"f": "day", "w": "f.id = w.id"}),
    ("SELECT day FROM f JOIN (SELECT id FROM w GROUP BY id) t ON t.id = f.id", {"f": "day", "w": "t.id = f.id"}),
    (
        "WITH t AS (SELECT f.id, max(d.id) AS a FROM f JOIN d ON f.origin = d.name GROUP BY f.id) "
        "SELECT w.day FROM w LEFT JOIN t ON t.id = w.id",
        {"w": "day", "f": "t.id = w.id", "d": "f.origin = d.name and t.id = w.id"},
    ),
    (
        "SELECT day FROM (SELECT *, rank() OVER (PARTITION BY day ORDER BY id) n FROM f) t JOIN d ON d.id = t.id",
        {"f": "day", "d": "d.id = t.id"},
    ),
    ("SELECT a.day FROM f a JOIN f b ON a.id = b.amount", {"f": "a.id = b.amount"}),
    ("SELECT f.day FROM f LEFT JOIN d ON d.id = f.id + 1", {"f": "day", "d": "d.id = (f.id + 1)"}),
    ("SELECT f.day FROM (SELECT day, id + 1 AS id FROM f) f JOIN d ON d.id = f.id", {"f": "day", "d": "d.id = f.id"}),
    ("SELECT f.day FROM f JOIN (SELECT max(id) AS id FROM d) d ON d.id = f.id", {"f": "day", "d": "*"}),
    ("SELECT f.day FROM f, d LEFT JOIN w ON w.day = f.day AND w.id = d.id", {"f": "day", "d": "*", "w": "day"}),
    (
        "SELECT f.day FROM f LEFT JOIN w ON f.day = w.day OR f.id = w.id",
        {"f": "day", "w": "(f.day = w.day) OR (f.id = w.id)"},
    ),
    ("SELECT f.day FROM f WHERE EXISTS (SELECT 1 FROM w WHERE w.day = f.day)", {"f": "day", "w": "*"}),
    ("SELECT f.day FROM f JOIN d ON (SELECT max(temp) > 3 FROM w)", {"f": "day", "d": "*", "w": "*"}),
    ("SELECT day, (SELECT max(temp) FROM w) AS t FROM f", {"f": "day", "w": "*"}),
    ("SELECT f.day FROM f JOIN (SELECT day FROM w ORDER BY day LIMIT 3) w ON f.day = w.day", {"f": "day", "w": "*"}),
    ("SELECT a.day FROM f a JOIN f b ON a.id < b.id", {"f": "a.id < b.id"}),
    (
        "SELECT f.day FROM f JOIN w ON date_trunc('HOUR', f.day) = w.day AND w.id BETWEEN 1 AND f.id WHERE f.id > 1",
        {"f": "day", "w": "DATE_TRUNC('HOUR', f.day) = w.day and w.id BETWEEN 1 AND f.id"},
    ),
    (
        "WITH x AS (SELECT id + 1 AS id FROM d WHERE name > 'a') SELECT f.day FROM f LEFT JOIN x ON x.id > f.id",
        {"f": "day", "d": "x.id > f.id"},
    ),
    ("SELECT f.day FROM f LEFT JOIN (SELECT max(id) m FROM d GROUP BY name) x ON m = f.id", {"f": "day", "d": "*"}),
    ("SELECT f.day FROM f JOIN d ON to_json(struct(d.Name)) = f.origin", {"f": "day", "d": "*"}),
    ("SELECT day FROM f UNION ALL SELECT 1 FROM w JOIN d ON d.id = w.id", {"f": "day", "w": "1", "d": "*"}),
    (
        "SELECT f.day FROM f LEFT JOIN d ON f.id = d.id JOIN w ON w.id <=> d.id",
        {"f": "day", "d": "f.id = d.id", "w": "w.id <=> d.id"},
    ),
]

UNTRACED = [
    ("SELECT day, sum(amount) OVER (PARTITION BY origin) AS n FROM f", "is not partitioned by f.day"),
    ("SELECT day, row_number() OVER (ORDER BY day) AS n FROM f", "is not partitioned by f.day"),
    ("SELECT day FROM f QUALIFY row_number() OVER (PARTITION BY id ORDER BY day) = 1", "is not partitioned by f.day"),
    ("SELECT day FROM (SELECT day, rank() OVER (ORDER BY id) AS n FROM f) WHERE n = 1", "is not partitioned by f.day"),
    ("SELECT day FROM f ORDER BY day LIMIT 3", "LIMIT"),
    ("SELECT day FROM f UNION ALL (SELECT day FROM w ORDER BY id LIMIT 3)", "LIMIT"),
    ("SELECT origin AS day, count(*) AS n FROM f GROUP BY day", "does not contain f.origin"),
    ("SELECT day, count(*) AS n FROM f GROUP BY ROLLUP (day)", "subtotals"),
    ("SELECT day, count(*) AS n FROM f GROUP BY GROUPING SETS ((day), ())", "subtotals"),
    ("SELECT max(day) AS day FROM f GROUP BY origin", "over several rows"),
    ("SELECT lag(day) OVER (PARTITION BY day ORDER BY id) AS day FROM f", "over several rows"),
    ("SELECT (SELECT max(day) FROM w) AS day FROM f", "the subquery"),
    ("SELECT day FROM f WHERE amount > (SELECT avg(amount) FROM f)", "reads all rows"),
    ("SELECT a.day FROM f a WHERE EXISTS (SELECT 1 FROM f b WHERE b.id = a.id)", "reads all rows"),
    ("SELECT a.day FROM f a JOIN f b ON a.id < 3", "no value of b is joined to a.day"),
    ("SELECT w.day FROM f LEFT JOIN w ON f.day = w.day", "is null in rows that the outer join"),
    ("SELECT f.day FROM f RIGHT JOIN w ON f.day = w.day", "is null in rows that the outer join"),
    ("SELECT coalesce(f.day, w.day) AS day FROM f FULL JOIN w ON f.day <=> w.day", "is computed from f and w"),
    ("SELECT coalesce(w.day, f.day) AS day FROM f LEFT JOIN w ON f.id = w.id", "is computed from f and w"),
    ("SELECT f.origin || w.origin AS day FROM f JOIN w ON f.day = w.day", "is computed from f and w"),
    ("SELECT t.day FROM f LATERAL VIEW explode(array(day)) t AS day", "no column"),
    ("SELECT o.p AS day FROM o LATERAL VIEW explode(array(7, 8)) o AS p", "no column"),
    ("SELECT explode(array(day)) AS day FROM f", "makes several rows"),
    ("SELECT window(day, '1 hour', '30 minutes').start AS day, count(*) AS n FROM f GROUP BY 1", "makes several rows"),
    ("SELECT session_window(day, '1 hour').start AS day, count(*) AS n FROM f GROUP BY 1", "over several rows"),
    ("SELECT window(day, '1 hour').start AS day FROM f UNION ALL SELECT day FROM f", "cannot choose rows of f by"),
    ("SELECT window(h, '1 day').end AS day FROM (SELECT window(day, '1 hour').start h FROM f)", "cannot choose rows"),
    ("SELECT session_window.start AS day FROM f GROUP BY session_window(day, '1 hour')", "over several rows"),
    ("SELECT o.p.x AS day FROM s", "o is no column"),
    ("SELECT p.x AS day FROM o JOIN s ON o.o = s.s", "p is not the name of one column"),
    ("SELECT p.X AS day, count(*) AS n FROM o GROUP BY p.x", "does not contain"),
    ("SELECT window(day, '1 hour').start AS day FROM t", "t has a column window"),
    ("SELECT x AS day FROM f PIVOT (sum(amount) FOR origin IN ('x' AS x))", "x is not known to be a column that PIVOT"),
    ("SELECT day FROM f PIVOT (sum(amount) FOR (origin, day) IN (('x', 1) AS x))", "that PIVOT"),
    ("SELECT day FROM (SELECT id, origin, amount FROM f) UNPIVOT (day FOR what IN (id, amount))", "that UNPIVOT"),
    ("SELECT day FROM (SELECT *, 1 AS k FROM range(3), f) PIVOT (max(k) FOR id IN (1 AS one))", "that PIVOT"),
    ("SELECT t.day FROM (SELECT * FROM f) AS t (i, day)", "not named one by one"),
    ("SELECT w.*, f.origin AS day FROM f JOIN w ON f.id = w.id GROUP BY 2", "GROUP BY 2 is not traced"),
    ("SELECT posexplode(array(1)) AS (p, v), origin, day FROM f GROUP BY 3, 4", "GROUP BY 3 is not traced"),
    ("SELECT day, count(*) AS n FROM f GROUP BY 3", "GROUP BY 3 is not traced"),
    ("SELECT id, day FROM f UNION ALL SELECT inline(array(struct(id, id))), origin FROM w", "not named one by one"),
    ("SELECT posexplode(array(1)) AS (p, v), day FROM f UNION ALL SELECT 1, 2, day FROM w", "not named one by one"),
    ("SELECT day FROM f UNION ALL SELECT * FROM (SELECT day FROM w)", "not named one by one"),
    ("SELECT t.day FROM f AS t (i, day, a, d)", "renames the columns of a source"),
    ("SELECT 'x' AS day, id FROM f", "the same in all rows"),
    ("SELECT f.day FROM f NATURAL JOIN w", "not traced"),
    ("SELECT day FROM (w JOIN d ON d.id = w.id) JOIN (f JOIN o ON o = id) USING (day)", "have the same name"),
    (" UNION ALL ".join(["SELECT day FROM f"] * 600), "too long or nested too deeply"),
    ("WITH RECURSIVE x AS (SELECT day FROM f UNION ALL SELECT day FROM x) SELECT day FROM x", "RECURSIVE"),
    ("SELECT f.day FROM f, (SELECT max(day) AS day FROM f) m WHERE f.day = m.day", "over several rows"),
]


@pytest.mark.parametrize(("query", "expressions"), TRACED)
def test_a_column_is_traced_to_the_values_of_its_sources(query: str, expressions: dict[str, str]) -> None:
    found = trace(query, "day", COLUMNS)
    assert found.reason == ""
    texts = {alias: " and ".join(texts).replace("`", "") for alias, texts in found.expressions.items()}
    looked_up = {alias: " or ".join(map(str, lookups)) for alias, lookups in found.lookups.items()}
    assert {**texts, **dict.fromkeys(found.whole, "*"), **looked_up} == expressions


@pytest.mark.parametrize(
    "tables",
    [
        "f LATERAL VIEW explode(array(1, 2)) t AS x",
        "(SELECT * FROM f LATERAL VIEW explode(array(1, 2)) AS x) AS f",
        "f LATERAL VIEW inline(array(struct(1 AS x))) t",
        "(SELECT day, amount, inline(array(struct(1 AS x))) FROM f) AS f",
        "(SELECT day, amount, x::INT FROM (SELECT *, 1 AS x FROM f)) AS f",
        "f JOIN (d JOIN (SELECT id, name AS x FROM d) ON d.id = id) ON f.day = d.id",
    ],
)
def test_a_window_by_a_column_is_not_one_by_what_select_names_alike(tables: str) -> None:
    """Spark takes x of the tables; that of SELECT would say that the window sees one day alone."""
    query = f"SELECT f.day AS x, sum(f.amount) OVER (PARTITION BY x) AS n FROM {tables}"
    assert "is not partitioned by f.day" in trace(query, "x", COLUMNS).reason


@pytest.mark.parametrize(("query", "reason"), UNTRACED)
def test_a_column_that_depends_on_other_rows_is_not_traced(query: str, reason: str) -> None:
    found = trace(query, "day", COLUMNS)
    assert reason in found.reason
    assert not found.expressions


def test_no_aggregate_over_all_rows_is_taken_for_a_value_of_one_row() -> None:
    for function in sorted(AGGREGATES):
        calls = [f"{function}({arguments})" for arguments in ("amount", "amount, id", "amount, id, 3")]
        read, *_ = [call for call in calls if query_of(f"SELECT {call} AS n").tree]
        found = trace(f"SELECT 1 AS day, {read} AS n FROM (SELECT amount, id FROM f)", "day", COLUMNS)
        assert "aggregates all rows" in found.reason, function


def test_columns_that_a_join_compares_must_have_one_type_where_functions_of_them_stand_for_each_other() -> None:
    query = "SELECT trunc(x.d, 'MM') AS day FROM (SELECT day AS d FROM f) AS x JOIN w ON x.d = w.day"
    assert trace(query, "day", COLUMNS).alike == [[("f", "`day`"), ("w", "`day`")]]
    assert trace(query.replace("trunc(x.d, 'MM')", "x.d"), "day", COLUMNS).alike == []


def test_sources_that_are_read_whole_are_named_with_the_reason() -> None:
    query = "SELECT f.day FROM f LEFT JOIN d ON f.id < 3 WHERE f.id IN (SELECT id FROM w)"
    assert trace(query, "day", COLUMNS).whole == {
        "d": "no value of d is joined to f.day",
        "w": "the subquery (SELECT id FROM w) reads all rows",
    }


def test_the_reasons_are_the_same_in_each_process() -> None:
    sources = [f"s{number}" for number in range(9)]
    whole = " UNION ALL ".join(f"SELECT max(day) AS day FROM {source}" for source in sources)
    query = f"SELECT f.day FROM f JOIN ({whole}) AS x ON x.day < f.id"
    assert list(trace(query, "day", {**COLUMNS, **dict.fromkeys(sources, ("day",))}).whole) == sources


def test_several_columns_are_traced_together_and_need_less_than_each_of_them() -> None:
    query = """
        SELECT f.day, f.origin, max(w.temp) AS warmest, count(*) AS n
        FROM f LEFT JOIN w ON w.day = f.day AND w.origin = f.origin GROUP BY f.day, f.origin
    """
    found = trace(query, ("day", "origin"), COLUMNS)
    assert found.parts == {"f": (("`day`", "`origin`"),), "w": (("`day`", "`origin`"),)}
    assert found.expressions["f"] == ("(`day`, `origin`)",)
    by_day = query.replace(" AND w.origin = f.origin", "")
    (lookup,) = trace(by_day, ("day", "origin"), COLUMNS).lookups["w"]
    assert lookup.hops[0].values == ("`f`.`day`", "`f`.`origin`"), "rows of w belong to several values"
    ranked = "SELECT day, origin, rank() OVER (PARTITION BY day ORDER BY id) AS place FROM f"
    assert "is not partitioned by (f.day, f.origin)" in trace(ranked, ("day", "origin"), COLUMNS).reason
    mixed = "SELECT f.day, w.origin FROM f JOIN w ON f.id = w.id"
    assert trace(mixed, ("day", "origin"), COLUMNS).reason == "(f.day, w.origin) is computed from f and w"

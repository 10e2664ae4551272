"""Tables with a query, in gold and silver: each mistake is named with its key and its likely fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import SilverQuerySpec
from millrace.specs.checks.sql import refresh_in_words, sql_problems
from millrace.specs.problem import SpecProblem
from tests.support.documents.refusals import only_problem, problems_of, sql_problems_of
from tests.support.documents.specs import bronze_document, gold_document, query_document, silver_document, write_specs
from tests.support.silver.enriched_orders import CHAIN, CUSTOMERS, ENRICHED, ORDERS, enriched_document, enriched_orders

GOLD = "gold.revenue"


def test_it_is_built_after_the_silver_tables_that_it_reads_whatever_their_names_are(tmp_path: Path) -> None:
    earlier = enriched_document("silver.all_orders", sources={"o": {"table": ENRICHED}}, query="SELECT order_id FROM o")
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(), earlier))
    assert (catalog.problems, sql_problems(catalog)) == ((), [])
    assert [table for table in catalog.tables if table != "silver.all_orders"] == list(sorted_by_layer(CHAIN))
    assert catalog.tables.index(ENRICHED) < catalog.tables.index("silver.all_orders") < catalog.tables.index(CHAIN[-1])
    spec = catalog.spec(ENRICHED)
    assert isinstance(spec, SilverQuerySpec)
    assert spec.source_tables == (ORDERS, CUSTOMERS)
    found = "traced through o: order_id; if c changes, found by c.customer_id = o.customer_id"
    assert refresh_in_words(spec, catalog.specs) == f"refreshed by order_id, {found}"


def sorted_by_layer(tables: tuple[str, ...]) -> list[str]:
    """The chain, with bronze by name."""
    return [*sorted(tables[:2]), *sorted(tables[2:4]), *tables[4:]]


def test_tables_of_silver_that_read_one_another_are_refused_with_the_way_around(tmp_path: Path) -> None:
    both = {"o": {"table": ORDERS}, "b": {"table": "silver.b"}}
    query = "SELECT o.order_id, o.amount, b.order_id AS other FROM o LEFT JOIN b ON b.order_id = o.order_id"
    back = enriched_document("silver.b", sources={"e": {"table": ENRICHED}}, query="SELECT e.order_id FROM e")
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(sources=both, query=query), back))
    cycles = [problem for problem in catalog.problems if "read one another" in problem.message]
    assert [(ENRICHED in problem.message, "silver.b" in problem.message) for problem in cycles] == [(True, True)]
    assert set(catalog.invalid) & {ENRICHED, "silver.b"}
    assert {ORDERS, CUSTOMERS} <= catalog.specs.keys()


@pytest.mark.parametrize(
    ("query", "types"),
    [
        (
            "WITH x AS (SELECT day, to_timestamp_ntz(day) AS at, amount FROM o)"
            " SELECT day, max(at) AS last, max(at::timestamp) AS zoned FROM x GROUP BY day",
            {"last": "timestamp_ntz"},
        ),
        (
            "SELECT day, map('a', json) AS parts, json::string AS j FROM (SELECT day, parse_json(day) AS json FROM o)",
            {"parts": "variant"},
        ),
        (
            "SELECT day, from_json(day, 'variant int, at timestamp_ntz') AS a, from_json(day, 'variant int') AS b"
            " FROM o UNION ALL SELECT day, from_json(day, 'x int, at timestamp_ntz'), from_json(day, 'x int') FROM o",
            {"a": "timestamp_ntz"},
        ),
        # Beside a timestamp, one without a zone becomes one, too.
        ("SELECT day, coalesce(to_timestamp_ntz(day), event_at) AS at FROM o", {}),
    ],
)
def test_a_column_that_raises_the_reader_version_is_found_as_far_as_the_query_says(
    tmp_path: Path, query: str, types: dict[str, str]
) -> None:
    found = sql_problems_of(tmp_path, bronze_document(), silver_document(), query_document(query=query))
    assert [problem.message.partition(", which raises")[0] for problem in found] == [
        f"the column {name!r} is a {kind}" for name, kind in types.items()
    ]


RULE = {"expect_column_values_to_not_be_null": {"column": "segment"}}


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"sources": {"o": {"table": "bronze.orders"}, "c": {"table": CUSTOMERS}}}, "sources.o.table", "silver.<",
         "merge its events"),
        ({"sources": {"o": {"table": ORDERS}, "c": {"table": GOLD}}}, "sources.c.table", "silver.<name>", "in gold"),
        ({"sources": {"o": {"table": ORDERS}, "c": {"table": "silver.custmers"}}}, "sources.c.table",
         "no spec creates", CUSTOMERS),
        ({"sources": [{"table": ORDERS}]}, "sources", "a mapping is needed here", ""),
        ({"keys": None}, "keys", "a list is needed here", ""),
        ({"stored_as_scd_type": 2}, "stored_as_scd_type", "unknown key", "computed from those of its sources"),
        ({"columns": {"order_id": {}}}, "columns", "unknown key", "not merged from events"),
        ({"group_by": {"day": "o.day"}}, "group_by", "the query itself says it", ""),
        ({"expectations": [{**RULE, "action": "quarantine"}]}, "expectations[0].action", "never received", "WHERE"),
    ],
)  # fmt: skip
def test_what_a_computed_row_cannot_have_is_refused_with_its_reason_and_the_way_out(
    tmp_path: Path, changes: dict[str, Any], key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, *enriched_orders(**changes)[:5]))
    assert (problem.key, problem.file.name) == (key, "orders_enriched.yaml")
    assert message in problem.message
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"keys": ["id"]}, "keys[0]", "the table has no such column"),
        ({"query": "SELECT o.order_id, c.sgment FROM o LEFT JOIN c USING (customer_id)"}, "query",
         "no column 'sgment'"),
        ({"expectations": [{"expect_column_values_to_not_be_null": {"column": "x"}, "action": "warn"}]},
         "expectations[0].expect_column_values_to_not_be_null.column", "no such column"),
    ],
)  # fmt: skip
def test_names_that_the_query_lacks_are_found(tmp_path: Path, changes: dict[str, Any], key: str, message: str) -> None:
    catalog = load_catalog(write_specs(tmp_path, *enriched_orders(**changes)[:5]))
    (problem,) = sql_problems(catalog)
    assert (problem.key, message in problem.message) == (key, True), problem


def test_a_table_without_a_query_that_names_a_silver_source_is_shown_the_way(tmp_path: Path) -> None:
    problem = only_problem(write_specs(tmp_path, *enriched_orders()[:4], silver_document("silver.x", source=ORDERS)))
    assert (problem.key, "`query`" in problem.fix) == ("source", True)


def test_readers_of_a_wrong_silver_table_wait_also_in_silver(tmp_path: Path) -> None:
    documents = {document["table"]: document for document in enriched_orders()}
    documents[ORDERS]["keyz"] = ["order_id"]
    catalog = load_catalog(write_specs(tmp_path, *documents.values()))
    assert set(catalog.invalid) == {ORDERS}
    wrong = enriched_document(keyz=["order_id"])
    catalog = load_catalog(write_specs(tmp_path, wrong))
    assert catalog.invalid[ENRICHED].source_tables == (ORDERS, CUSTOMERS)


def test_its_keys_are_rules_of_the_gate(tmp_path: Path) -> None:
    assert problems_of(write_specs(tmp_path, *enriched_orders())) == ()
    one, several = (
        SilverQuerySpec.model_validate(enriched_document(keys=keys, expectations=[{**RULE, "action": "warn"}]))
        for keys in (["order_id"], ["order_id", "amount"])
    )
    assert [rule.rule for rule in one.table_rules] == [
        "expect_column_values_to_be_unique(order_id)",
        "expect_column_values_to_not_be_null(order_id)",
        "expect_column_values_to_not_be_null(segment)",
    ]
    assert [rule.rule for rule in several.table_rules][:2] == [
        "expect_compound_columns_to_be_unique(order_id, amount)",
        "expect_column_values_to_not_be_null(order_id)",
    ]
    assert one.suite_hash != several.suite_hash


LAST_ORDERS = "SELECT day, order_id, row_number() OVER (PARTITION BY day ORDER BY amount DESC, order_id) AS rank FROM o"


def write(folder: Path, **changes: Any) -> Path:
    return write_specs(folder, bronze_document(), silver_document(), query_document(**changes))


def problems(folder: Path, **changes: Any) -> list[SpecProblem]:
    catalog = load_catalog(write(folder, **changes))
    return [*catalog.problems, *sql_problems(catalog)]


def test_a_sound_query_has_no_problem(tmp_path: Path) -> None:
    rule = {"expect_column_min_to_be_between": {"column": "rank", "min_value": 1}, "action": "fail"}
    changes = {"partitioned_by": ["day"], "zorder_by": ["order_id"], "expectations": [rule], "refresh_by": "day"}
    assert problems(tmp_path, query=LAST_ORDERS, **changes) == []


def test_names_that_a_query_makes_itself_are_no_problem(tmp_path: Path) -> None:
    queries = [
        "SELECT day, x, y FROM (SELECT day, order_id, amount FROM o) PIVOT (sum(amount) FOR order_id IN ('x', 'y'))",
        "SELECT day, id FROM o, range(3)",
        "SELECT day, col FROM (SELECT day, explode(array(amount)) FROM o)",
        "SELECT x.day, _stream AS stream FROM o AS x",
        "SELECT o.day.x AS x, day.x.y AS y FROM o",
        "SELECT window.start AS h, count(*) AS n FROM o GROUP BY window(event_at, '1 hour')",
        "SELECT window AS h, count(*) AS n FROM o GROUP BY window(event_at, '1 hour')",
        "SELECT day.x AS x FROM o AS day",
        "WITH x (d) AS (SELECT day FROM o) SELECT d AS day, transform(array(d), e -> e)[0] AS again FROM x",
    ]
    tables = [query_document(f"gold.q{number}", query=query) for number, query in enumerate(queries)]
    assert sql_problems_of(tmp_path, bronze_document(), silver_document(), *tables) == []


def test_a_text_that_is_compared_with_a_time_of_a_source_reads_the_clock(tmp_path: Path) -> None:
    days = "WITH x AS (SELECT o.day AS d, order_id FROM o) SELECT d AS day, order_id FROM x"
    (found,) = problems(
        tmp_path, query=f"{days} WHERE order_id <> 'now' AND d IN (SELECT day FROM o WHERE day > 'today')"
    )
    assert "'today', as a time, reads the clock" in found.message
    of_days = gold_document("gold.months", sources={"d": {"table": "gold.last_orders", "where": "day < 'tomorrow'"}})
    of_days |= {"refresh_from": {"d": "day"}, "group_by": {"day": "d.day"}, "measures": {"n": "count(*)"}}
    documents = bronze_document(), silver_document(), query_document(query="SELECT day, order_id FROM o"), of_days
    found = sql_problems(load_catalog(write_specs(tmp_path / "again", *documents)))
    assert [(x.key, x.message[:10]) for x in found] == [("sources.d.where", "'tomorrow'")]


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"query": "SELECT dya FROM o"}, "query", "no source has a column 'dya'", "did you mean 'day'?"),
        ({"query": "SELECT o.dya FROM o"}, "query", "the source 'o' has no column 'dya'", "did you mean 'day'?"),
        ({"query": "SELECT x.dya FROM o AS x"}, "query", "the source 'o' has no column 'dya'", "did you mean 'day'?"),
        ({"query": "SELECT day FROM p"}, "query", "p is not the alias of a source", "known are o"),
        ({"query": "SELECT day FROM o", "zorder_by": ["dya"]}, "zorder_by[0]", "no such column", "did you mean 'day'?"),
        ({"query": "SELECT day FROM o", "refresh_by": "dya"}, "refresh_by", "the query has no such column", "did you"),
        ({"query": LAST_ORDERS, "refresh_by": "order_id"}, "refresh_by",
         "cannot be refreshed by this column: the window", "write `refresh: full`"),
        ({"query": "SELECT day, sum(amount) OVER (ORDER BY day RANGE 6 PRECEDING) AS n FROM o", "refresh_by": "day"},
         "refresh_by", "cannot be refreshed by this column: the window", "write `lookback: 6 days`"),
        ({"query": LAST_ORDERS, "refresh_by": ["day", "order_id"]}, "refresh_by",
         "cannot be refreshed by these columns: the window", "write `refresh: full`"),
    ],
)  # fmt: skip
def test_a_wrong_name_of_a_query(tmp_path: Path, changes: dict[str, Any], key: str, message: str, fix: str) -> None:
    found = problems(tmp_path, **changes)
    assert key in [problem.key for problem in found]
    problem = next(problem for problem in found if problem.key == key)
    assert message in problem.message
    assert problem.fix.startswith(fix)


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"group_by": {"day": "o.day"}}, "group_by", "a table with a query has no group_by"),
        ({"sources": {"o": {"table": "silver.orders", "where": "day > 1"}}}, "sources", "put where in the query"),
        ({"refresh_by": "day", "refresh": "full"}, "refresh", "leave one of them out"),
        ({"refresh": "ful"}, "refresh", "unknown value"),
        ({"lookback": "7 days"}, "lookback", "add refresh_by"),
        ({"refresh_by": ["day", "order_id"], "lookback": "7 days"}, "lookback", "leave one in refresh_by"),
        ({"refresh_by": []}, "refresh_by", "at least one name is needed"),
        ({"refresh_by": ["day", 5]}, "refresh_by[1]", "text is needed here"),
        ({"refresh_by": "Day"}, "refresh_by", ""),
        ({"refresh_by": "day", "lookback": "7 months"}, "lookback", "'24 hours', '7 days' or unbounded"),
        ({"refresh_by": "day", "lookback": "0 days"}, "lookback", "leave it out"),
    ],
)
def test_settings_of_the_other_form_are_wrong(tmp_path: Path, changes: dict[str, Any], key: str, message: str) -> None:
    problem = only_problem(write(tmp_path, **changes))
    assert problem.key == key
    assert message in problem.message


def test_groups_without_all_their_settings_or_with_one_of_a_query(tmp_path: Path) -> None:
    document = gold_document(refresh="full")
    problem = only_problem(write_specs(tmp_path, bronze_document(), silver_document(), document))
    assert (problem.key, problem.message.partition(":")[0]) == ("refresh", "refresh is for a table with a query")
    del document["refresh"], document["measures"]
    problem = only_problem(write_specs(tmp_path, document))
    assert (problem.key, problem.message) == ("measures", "the key is missing; or write a query instead")


def test_a_check_says_how_the_table_is_refreshed_and_why(tmp_path: Path) -> None:
    def words(**changes: Any) -> str:
        catalog = load_catalog(write(tmp_path, **changes))
        return refresh_in_words(catalog.specs["gold.last_orders"], catalog.specs)

    assert words(query=LAST_ORDERS) == "refreshed by day, traced through o: day"
    windows = "SELECT window(event_at, '1 hour').start AS h, count(*) AS n FROM o GROUP BY 1"
    assert words(query=windows) == "refreshed by h, traced through o: window(event_at, '1 hour').start"
    by_text = words(query="SELECT date_format(day, 'yyyy-MM') AS month, count(*) AS n FROM o GROUP BY 1")
    assert by_text.endswith("o: date_format(day, 'yyyy-MM'); each refresh reads all files of o")
    running = LAST_ORDERS.replace("PARTITION BY day ORDER BY", "ORDER BY day,")
    text = words(query=running, refresh_by="day", lookback="unbounded")
    assert text == "refreshed by day and all later values, traced through o: day"
    assert words(query=LAST_ORDERS, refresh="full") == "computed whole: the spec says so"
    assert words(query="SELECT max(day) AS day FROM o") == "computed whole: it comes out of MAX(day), over several rows"

"""A version that is checked by what changed has the results of a check of all rows, after any changes on real Delta."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.expectation import Expectation
from tests.support.quality.checked_table import OTHER, CheckedTable, Step
from tests.support.quality.odd_frames import EDGES, PAIRS, arrow, rows, rule
from tests.support.quality.table_rules import table_rules

CONDITIONS = [
    "true", "whole IS NULL", "whole < 5", "word = 'a'", "real >= 5", "money <=> NULL", "day > '2013-01-01'",
]  # fmt: skip
SETTINGS = [
    {"whole": "whole"}, {"whole": "long % 7"}, {"word": "other"}, {"real": "NULL", "money": "5"},
    {"day": "NULL", "at": "NULL"},
]  # fmt: skip
LONG_MONEY = pa.schema([("long_money", pa.decimal128(38, 10))])


def steps() -> st.SearchStrategy[Step]:
    """Return changes of a table: inserts, merges, updates, deletes, restores, and OPTIMIZE."""
    condition = st.sampled_from(CONDITIONS)
    return st.one_of(
        st.tuples(st.just("insert"), rows().map(arrow)),
        st.tuples(st.just("merge"), rows().map(of_different_keys)),
        st.tuples(st.just("update"), st.tuples(st.sampled_from(SETTINGS), condition)),
        st.tuples(st.just("delete"), condition),
        st.tuples(st.just("restore"), st.just(None)),
        st.tuples(st.just("optimize"), st.just(None)),
    )


def of_different_keys(drawn: list[tuple[Any, ...]]) -> pa.Table:
    """Return rows for MERGE, which refuses two for one key."""
    return arrow(list({row[0]: row for row in drawn}.values()))


def references() -> st.SearchStrategy[Expectation]:
    """Return rules that values, or combinations of two, exist in the other table."""
    share = st.sampled_from([{}, {"mostly": 0.5}, {"mostly": 0.2}])
    one = st.builds(
        lambda column, mostly: rule(
            "expect_column_values_to_exist_in_other_table",
            {"column": column, "other_table": OTHER, "other_column": column, **mostly},
        ),
        st.sampled_from([*EDGES]),
        share,
    )
    two = st.builds(
        lambda pair, mostly: rule(
            "expect_compound_columns_to_exist_in_other_table",
            {"column_list": [*pair], "other_table": OTHER, "other_column_list": [*pair], **mostly},
        ),
        st.sampled_from(PAIRS),
        share,
    )
    return one | two


def conditions() -> st.SearchStrategy[Expectation]:
    """Return conditions in SQL."""
    return st.sampled_from(CONDITIONS).map(lambda condition: rule("expect_sql", {"condition": condition}))


def missing_by_joins(spark: SparkSession, table: CheckedTable) -> list[int]:
    """Return for each rule on the other table how many rows have no counterpart there, by an anti-join of Spark."""
    own, other = (spark.read.format("delta").load(str(path)) for path in (table.path, table.other))
    of_rules = [each.arguments for each in table.rules if "other_table" in each.arguments]
    columns = [given.get("column_list") or [given["column"]] for given in of_rules]
    # `dropna` would drop NaN as well.
    stated = [own.where(" AND ".join(f"{name} IS NOT NULL" for name in names)) for names in columns]
    return [rows.join(other, on=names, how="left_anti").count() for rows, names in zip(stated, columns, strict=True)]


def agreed(by_change: Sequence[CheckResult], of_all_rows: Sequence[CheckResult]) -> list[str]:
    """Require the same results, and return how each rule was judged."""
    results, whole = (
        [check.model_copy(update={"judged_by": ""}) for check in side] for side in (by_change, of_all_rows)
    )
    assert results == whole
    return [check.judged_by for check in by_change]


@pytest.mark.slow
@settings(
    max_examples=3,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    first=rows().filter(lambda drawn: len(drawn) > 3),
    of_other=rows(),
    rules=st.tuples(table_rules(), references(), references(), conditions()).map(lambda drawn: [*drawn[0], *drawn[1:]]),
    changes=st.lists(st.lists(st.tuples(steps(), st.booleans()), min_size=1, max_size=3), min_size=2, max_size=3),
)
def test_a_check_by_what_changed_has_the_results_of_a_check_of_all_rows(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[Any, ...]],
    of_other: list[tuple[Any, ...]],
    rules: list[Expectation],
    changes: list[list[tuple[Step, bool]]],
) -> None:
    table = CheckedTable(tmp_path_factory.mktemp("checked"), rules, proof_after=1)  # every second change is a proof
    table.create(arrow(first), arrow(of_other))
    agreed(*table.check())
    for steps_of_check in changes:
        for step, to_other in steps_of_check:
            table.apply(step, to_other=to_other)
        by_change, of_all_rows = table.check()
        agreed(by_change, of_all_rows)
        of_others = [check for check in by_change if "_in_other_table" in check.rule]
        assert [check.unexpected_rows for check in of_others] == missing_by_joins(spark, table)


@pytest.mark.usefixtures("spark")
def test_only_what_does_not_follow_from_the_changes_of_both_tables_reads_all_rows(tmp_path: Path) -> None:
    exists = "expect_column_values_to_exist_in_other_table"
    rules = [
        rule("expect_column_values_to_not_be_null", {"column": "word", "mostly": 0.1}),
        rule("expect_column_max_to_be_between", {"column": "whole", "max_value": 9}),
        rule("expect_column_sum_to_be_between", {"column": "whole", "max_value": 99}),
        rule("expect_column_mean_to_be_between", {"column": "money", "max_value": 99}),
        rule("expect_column_values_to_be_unique", {"column": "whole"}),
        rule("expect_compound_columns_to_be_unique", {"column_list": ["whole", "word", "whole"]}),
        rule("expect_column_unique_value_count_to_be_between", {"column": "whole", "min_value": 1}),
        rule("expect_column_distinct_values_to_contain_set", {"column": "whole", "value_set": [1, 5]}),
        rule("expect_column_distinct_values_to_equal_set", {"column": "whole", "value_set": [1, 2, 3, 5]}),
        rule("expect_sql", {"condition": "whole > 0"}),
        rule("expect_column_max_to_be_between", {"column": "day", "max_value": "2013-12-31"}),
        rule("expect_column_min_to_be_between", {"column": "whole", "min_value": -9}),
        rule("expect_column_to_exist", {"column": "word"}),
        rule("expect_column_sum_to_be_between", {"column": "real", "max_value": 99}),
        rule("expect_sql", {"condition": "whole < 9 AND current_date() > day"}),
        rule(exists, {"column": "word", "other_table": OTHER, "other_column": "word"}),
    ]
    table, newest = CheckedTable(tmp_path, rules), date(2013, 1, 2)

    def judged(by: str, of_other: str, least: str = "") -> list[str]:
        """A column needs no rows, a sum of doubles all of them, and a least value all of them if it is gone."""
        return [by] * 11 + [least or by, "", "all rows", "all rows", of_other]

    def checked() -> tuple[list[str], set[Any]]:
        by_change, of_all_rows = table.check()
        missing = by_change[-1]
        assert missing.unexpected_rows == len(missing.samples)
        return agreed(by_change, of_all_rows), set(missing.samples)

    rest = [
        row(whole=2, word="b", real=0.1, money=Decimal("0.1")),
        row(whole=3, real=0.1),
        row(whole=5, word="z", real=0.1),
    ]
    table.create(arrow([row(whole=1, word="a", real=0.1, day=newest), *rest]), arrow([row(word="a"), row(word="b")]))
    assert checked() == (judged("all rows", "all rows"), {"z"})

    table.apply(("insert", arrow([row(whole=4, word="c", money=Decimal("1.5")), row(whole=1, word="a", day=newest)])))
    table.apply(("optimize", None))
    table.apply(("insert", arrow([row(whole=7, word="d", day=newest), row(whole=6, word="a")])))
    table.apply(("delete", "word IN ('b', 'z')"))
    table.apply(("update", ({"word": "'e'"}, "whole = 3")))
    change = "the change since version 0"
    assert checked() == (judged(change, f"{change} and {OTHER} version 0"), {"c", "d", "e"})

    table.apply(("delete", "whole = 1"))
    table.apply(("insert", arrow([row(word="c")])), to_other=True)
    table.apply(("delete", "word = 'a'"), to_other=True)
    change = "the change since version 5"
    found = judged(change, f"{change} and {OTHER} version 0", least="all rows")
    assert checked() == (found, {"a", "d", "e"}), "a file has the newest day"

    table.apply(("restore", None), to_other=True)
    assert checked() == (judged("the change since version 6", "all rows"), {"d", "e"})
    table.apply(("restore", None))
    assert checked() == (judged("all rows", "all rows"), {"d", "e"})


@pytest.mark.usefixtures("spark")
def test_a_sum_of_long_decimals_that_may_overflow_in_some_order_of_the_rows_is_that_of_all_rows(tmp_path: Path) -> None:
    names = ["expect_column_sum_to_be_between", "expect_column_mean_to_be_between"]
    rules = [rule(name, {"column": "long_money", "max_value": 9}) for name in names]
    table = CheckedTable(tmp_path, [*rules, rule("expect_column_values_to_be_unique", {"column": "long_money"})])

    def money(*amounts: str) -> pa.Table:
        return pa.Table.from_pylist([{"long_money": Decimal(amount)} for amount in amounts], LONG_MONEY)

    def checked() -> tuple[list[str], list[Any]]:
        by_change, of_all_rows = table.check()
        return agreed(by_change, of_all_rows), [check.observed for check in by_change]

    most = "9" * 28
    table.create(money("1.5", "2.5"), arrow([]))
    assert checked() == (["all rows"] * 3, [4.0, 2.0, None])
    table.apply(("insert", money(most, f"-{most}")))
    by_change, _ = table.check()
    assert {check.judged_by for check in by_change[:2]} <= {"", "all rows"}, "the order of the rows decides"
    table.apply(("insert", money(most)))
    judged, observed = checked()
    assert (judged, observed[:2]) == (["", "", "the change since version 1"], [None, None]), "the sum has 39 digits"


def row(**values: Any) -> tuple[Any, ...]:
    return tuple(values.get(column) for column in EDGES)

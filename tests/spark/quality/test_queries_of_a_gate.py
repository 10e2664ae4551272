"""Any number of rules takes as many queries as one rule, and their plans have nothing that takes a job of its own."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql.connect.dataframe import DataFrame

from millrace.contracts.spec.expectation import Expectation
from millrace_spark.quality.verdicts.rule_result import ALL_ROWS
from tests.support.ledger.delta_tables import intent_of
from tests.support.quality.checked_table import CheckedTable
from tests.support.quality.odd_frames import rule

pytestmark = pytest.mark.usefixtures("spark")

FILTERS = re.compile(r"FileScan parquet.* DataFilters: (.*), Format")


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The plan of each query, as Spark made it."""
    made: list[str] = []
    collect = DataFrame.collect

    def explain_and_collect(frame: DataFrame) -> list[Row]:
        made.append(frame._explain_string())
        return collect(frame)

    monkeypatch.setattr(DataFrame, "collect", explain_and_collect)
    return made


def row_rules(columns: list[str], limit: int) -> list[Expectation]:
    """Return two rules on the rows for each column; those with `limit` can fail."""
    between = {"min_value": 0, "max_value": limit}
    rules = [rule("expect_column_values_to_be_between", {"column": name, **between}) for name in columns]
    return [*rules, *(rule("expect_column_values_to_not_be_null", {"column": name, "mostly": 0.9}) for name in columns)]


def rows_of(columns: list[str], first: int, last: int) -> pa.Table:
    return pa.table({name: range(first + place, last + place) for place, name in enumerate(columns)})


def listings(plan: str) -> int:
    """Return how often Delta lists the files of the table, each time in a job: once for all scans with equal filters.

    The query itself is one more job, unless a part of it is a job, too.
    """
    assert not re.search("AdaptiveSparkPlan|BroadcastExchange|Subquery", plan), plan
    return len(set(FILTERS.findall(plan)))


def test_rules_take_one_query_with_one_list_of_files_and_samples_another_one(tmp_path: Path, plans: list[str]) -> None:
    columns = [f"c{number}" for number in range(20)]
    table = CheckedTable(tmp_path, row_rules(columns, 100))
    table.create(rows_of(columns, 0, 1000), rows_of(columns, 0, 0))
    checked, _ = table.check()
    assert [check.passed for check in checked] == [False] * 20 + [True] * 20
    assert [listings(plan) for plan in plans] == [1, 1]


def test_rules_by_the_change_read_it_once_and_list_the_files_of_each_combination_that_they_count(
    tmp_path: Path, plans: list[str]
) -> None:
    columns, of_all_rows = ["a", "b", "c", "d"], [1]
    counting = [rule("expect_column_values_to_be_unique", {"column": name}) for name in ("a", "b")]
    counting += [rule("expect_compound_columns_to_be_unique", {"column_list": ["c", "d"]})]
    figures = [rule("expect_column_max_to_be_between", {"column": name, "max_value": 2000}) for name in columns]
    table = CheckedTable(tmp_path, [*row_rules(columns, 2000), *figures, *counting])
    table.create(rows_of(columns, 0, 1000), rows_of(columns, 0, 0))
    table.check()
    assert [listings(plan) for plan in plans] == of_all_rows

    plans.clear()
    table.apply(("update", ({"a": "a + 1000", "c": "c + 1"}, "a >= 950")))
    table.apply(("insert", rows_of(columns, 1000, 1050)))
    checked, _ = table.check()
    assert {check.judged_by for check in checked} == {"the change since version 0"}
    # Delta looks for the files of two columns' values, and for those of a pair of columns.
    assert [listings(plan) for plan in plans] == [0, 3, *of_all_rows]


def test_a_large_table_is_judged_by_what_changed_unless_much_did_or_the_setting_says_otherwise(
    spark: SparkSession, tmp_path: Path
) -> None:
    greatest = rule("expect_column_max_to_be_between", {"column": "n", "max_value": 10**9})
    table = CheckedTable(tmp_path, [greatest], "cheaper")
    table.create(pa.table({"n": range(510_000)}), pa.table({"n": [1]}))
    batch = intent_of("t", 1).user_metadata()

    def judged_by(rows: int) -> str:
        new = spark.range(rows).toDF("n").write.format("delta").option("userMetadata", batch)
        new.mode("append").save(str(table.path))
        [check] = table.check()[0]
        return check.judged_by

    assert [judged_by(rows) for rows in (1, 100, 4_000)] == [ALL_ROWS, "the change since version 1", ALL_ROWS]
    table.reads = "changes"
    assert judged_by(4_000) == "the change since version 3"
    table.reads = "all_rows"
    assert judged_by(1) == ALL_ROWS

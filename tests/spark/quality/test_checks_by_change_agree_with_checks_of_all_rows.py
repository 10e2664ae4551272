"""A version that is checked by what changed has the results of a check of all rows, after any changes on real Delta."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from include.contracts.spec.expectation import Expectation
from include.control.gates.judged_figures import JudgedFigures
from include.control.ledger.states.measures import table_rows
from include.control.log.batch import BatchSources
from include.control.log.delta_log import latest_version
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.gate import changed_rows
from spark_jobs.layers.gate.changed_rows import JudgedVersion, change_since, next_figures
from spark_jobs.quality.fused.one_pass import GATE_CONF
from spark_jobs.quality.suites import CheckedRules, check_rules
from spark_jobs.runtime.session import own_session
from tests.support.ledger.delta_tables import intent_of
from tests.support.quality.odd_frames import EDGES, frame, rows, rule
from tests.support.quality.table_rules import table_rules

METADATA = "spark.databricks.delta.commitInfo.userMetadata"
CONDITIONS = [
    "true", "whole IS NULL", "whole < 5", "word = 'a'", "real >= 5", "money <=> NULL", "day > '2013-01-01'",
]  # fmt: skip
SETTINGS = ["whole = whole", "whole = long % 7", "word = other", "real = NULL, money = 5", "day = NULL, at = NULL"]


@pytest.fixture(autouse=True, scope="module")
def _changes_are_followed_in_small_tables() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_rows, "FEW_ROWS", -(10**9))
        yield


Step = tuple[str, Any]


def steps() -> st.SearchStrategy[Step]:
    """Return changes of a table: inserts, updates, deletes, restores, and OPTIMIZE."""
    condition = st.sampled_from(CONDITIONS)
    return st.one_of(
        st.tuples(st.just("insert"), rows()),
        st.tuples(st.just("update"), st.tuples(st.sampled_from(SETTINGS), condition)),
        st.tuples(st.just("delete"), condition),
        st.tuples(st.just("restore"), st.just(None)),
        st.tuples(st.just("optimize"), st.just(None)),
    )


class CheckedTable:
    """A Delta table, and the figures of its last check."""

    def __init__(self, spark: SparkSession, path: Path, rules: list[Expectation]) -> None:
        self.spark, self.path, self.rules = spark, path, rules
        self.last: JudgedFigures | None = None

    @contextmanager
    def batch(self, **sources: Any) -> Iterator[None]:
        """Let the commits within be those of a batch."""
        self.spark.conf.set(METADATA, intent_of("t", 1, sources=BatchSources(**sources)).user_metadata())
        yield
        self.spark.conf.unset(METADATA)

    def create(self, first: list[tuple[Any, ...]]) -> None:
        writer = frame(self.spark, first).write.format("delta").option("delta.enableChangeDataFeed", "true")
        writer.save(str(self.path))

    def apply(self, step: Step) -> None:
        kind, given = step
        table = f"delta.`{self.path}`"
        with self.batch(restores=0) if kind == "restore" else self.batch():
            if kind == "insert":
                frame(self.spark, given).write.format("delta").mode("append").save(str(self.path))
            elif kind == "update":
                self.spark.sql(f"UPDATE {table} SET {given[0]} WHERE {given[1]}").collect()
            elif kind == "delete":
                self.spark.sql(f"DELETE FROM {table} WHERE {given}").collect()
            elif kind == "restore":
                version = max(latest_version(self.path) - 1, 0)
                self.spark.sql(f"RESTORE TABLE {table} TO VERSION AS OF {version}").collect()
            else:
                self.spark.sql(f"OPTIMIZE {table}").collect()

    def check(self) -> tuple[CheckedRules, CheckedRules]:
        """Return the check by what changed since the last check, and that of all rows."""
        version = latest_version(self.path)
        judged = JudgedVersion(self.path, version, "rules", table_rows(self.path, version))
        with own_session(GATE_CONF) as session:
            df = read_version(session, self.path, version)
            change = change_since(self.last, judged, session)
            by_change = check_rules(df, self.rules, change=change)
            of_all_rows = check_rules(df, self.rules)
        self.last = next_figures(judged, change, by_change.lasting)
        return by_change, of_all_rows


def agreed(by_change: CheckedRules, of_all_rows: CheckedRules) -> list[str]:
    """Require the same results, and return how each rule was judged."""
    results, whole = (
        [check.model_copy(update={"judged_by": ""}) for check in side.checks] for side in (by_change, of_all_rows)
    )
    assert results == whole
    return [check.judged_by for check in by_change.checks]


@pytest.mark.slow
@settings(
    max_examples=5,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    first=rows(),
    rules=table_rules(),
    changes=st.lists(st.lists(steps(), min_size=1, max_size=2), min_size=2, max_size=3),
)
def test_a_check_by_what_changed_has_the_results_of_a_check_of_all_rows(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[Any, ...]],
    rules: list[Expectation],
    changes: list[list[Step]],
) -> None:
    table = CheckedTable(spark, tmp_path_factory.mktemp("checked") / "table", rules)
    table.create(first)
    agreed(*table.check())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_rows, "READ_ALL_AFTER", 1)  # every second change is a proof
        for steps_of_check in changes:
            for step in steps_of_check:
                table.apply(step)
            agreed(*table.check())


def test_only_figures_that_do_not_follow_from_the_change_read_all_rows(spark: SparkSession, tmp_path: Path) -> None:
    rules = [
        rule("expect_column_values_to_not_be_null", {"column": "word", "mostly": 0.1}),
        rule("expect_column_min_to_be_between", {"column": "whole", "min_value": -9}),
        rule("expect_column_max_to_be_between", {"column": "whole", "max_value": 9}),
        rule("expect_column_sum_to_be_between", {"column": "whole", "max_value": 99}),
        rule("expect_column_mean_to_be_between", {"column": "money", "max_value": 99}),
        rule("expect_column_sum_to_be_between", {"column": "real", "max_value": 99}),
        rule("expect_column_to_exist", {"column": "word"}),
        rule("expect_column_values_to_be_unique", {"column": "whole"}),
        rule("expect_compound_columns_to_be_unique", {"column_list": ["whole", "word", "whole"]}),
        rule("expect_column_unique_value_count_to_be_between", {"column": "word", "min_value": 1}),
    ]
    table = CheckedTable(spark, tmp_path / "table", rules)
    table.create([row(whole=number, word="a", real=0.1) for number in (1, 2, 3)])
    assert agreed(*table.check()) == ["all rows"] * 6 + ["", *["all rows"] * 3]

    table.apply(("insert", [row(whole=4), row(whole=2)]))
    change = "the change since version 0"
    assert agreed(*table.check()) == [change] * 5 + ["all rows", "", *[change] * 3]

    table.apply(("delete", "whole = 1"))
    change = "the change since version 1"
    assert agreed(*table.check()) == [change, "all rows", *[change] * 3, "all rows", "", *[change] * 3], (
        "the least value is gone"
    )

    table.apply(("optimize", None))
    change = "the change since version 2"
    assert agreed(*table.check()) == [change] * 5 + ["all rows", "", *[change] * 3]

    table.apply(("restore", None))
    assert agreed(*table.check()) == ["all rows"] * 6 + ["", *["all rows"] * 3]


def test_an_extreme_that_another_file_has_too_is_no_reason_to_read_all_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    rules = [
        rule("expect_column_min_to_be_between", {"column": "whole", "min_value": -9}),
        rule("expect_column_max_to_be_between", {"column": "day", "max_value": "2013-12-31"}),
        rule("expect_column_distinct_values_to_contain_set", {"column": "whole", "value_set": [1, 5]}),
        rule("expect_column_distinct_values_to_equal_set", {"column": "word", "value_set": ["a", "b"]}),
    ]
    table, newest = CheckedTable(spark, tmp_path / "table", rules), date(2013, 1, 2)
    table.create([row(whole=1, day=newest, word="a"), row(whole=5, word="a")])
    agreed(*table.check())
    table.apply(("insert", [row(whole=1, day=newest, word="b"), row(whole=0, word="b")]))
    agreed(*table.check())
    table.apply(("delete", "whole = 0"))
    assert agreed(*table.check()) == ["all rows", *["the change since version 1"] * 3]
    table.apply(("delete", "word = 'b'"))
    assert agreed(*table.check()) == ["the change since version 2"] * 4
    table.apply(("delete", "whole = 1"))
    assert agreed(*table.check()) == [*["all rows"] * 2, *["the change since version 3"] * 2]


def row(**values: Any) -> tuple[Any, ...]:
    return tuple(values.get(column) for column in EDGES)

"""Every rule that `lakehouse suggest` prints for a version passes on that version."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from millrace.contracts.spec.expectation import Expectation
from millrace.inference.suggested_rules import Past, Suggestion, suggest_rules
from millrace_spark.quality.suites import check_rules
from tests.support.quality.odd_frames import EDGES, SCHEMA, frame

COLUMNS = {field.name: field.type for field in SCHEMA}


def suggested(drawn: list[tuple[Any, ...]]) -> list[Suggestion]:
    named = [dict(zip(SCHEMA.names, row, strict=True)) for row in drawn]
    with duckdb.connect() as connection:
        connection.register("version", pa.Table.from_pylist(named, schema=SCHEMA))
        return suggest_rules(connection, "version", COLUMNS, Past())


def odd_rows() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    """Rows in which each column has all, some or one of its odd values, with NULL or without."""

    def of_column(values: list[Any]) -> st.SearchStrategy[list[Any]]:
        chosen = st.lists(st.sampled_from([None, *values]), min_size=1, max_size=len(values), unique_by=repr)
        return chosen.flatmap(lambda some: st.lists(st.sampled_from(some), min_size=60, max_size=60))

    columns = st.tuples(*(of_column(values) for values in EDGES.values()))
    return columns.map(lambda lists: list(zip(*lists, strict=True)))


def test_each_passes(spark: SparkSession) -> None:
    names: set[str] = set()

    @settings(
        max_examples=3,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(odd_rows())
    def of_rows(drawn: list[tuple[Any, ...]]) -> None:
        found = suggested(drawn)
        rules = [Expectation(name=rule.name, arguments=rule.arguments, action="warn") for rule in found]
        assert [check for check in check_rules(frame(spark, drawn), rules)[0] if not check.passed] == []
        names.update(rule.name for rule in rules)

    of_rows()
    assert len(names) >= 4


def test_a_unique_column_is_unique(spark: SparkSession) -> None:
    drawn = [tuple(number if name in ("whole", "long") else None for name in SCHEMA.names) for number in range(50)]
    found = [rule for rule in suggested(drawn) if rule.name == "expect_column_values_to_be_unique"]
    assert [rule.arguments["column"] for rule in found] == ["whole", "long"]
    rules = [Expectation(name=rule.name, arguments=rule.arguments, action="warn") for rule in found]
    assert all(check.passed for check in check_rules(frame(spark, drawn), rules)[0])

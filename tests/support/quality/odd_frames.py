"""Frames of unusual values, and rules on them, for property tests of the quality rules."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from millrace.contracts.spec.expectation import Action, Expectation
from millrace_spark.quality.rules.bounds import value_bound

SCHEMA = pa.schema(
    {
        "whole": pa.int32(),
        "long": pa.int64(),
        "single": pa.float32(),
        "real": pa.float64(),
        "money": pa.decimal128(12, 3),
        "word": pa.string(),
        "other": pa.string(),
        "day": pa.date32(),
        "at": pa.timestamp("us", tz="UTC"),
        "yes": pa.bool_(),
    }
)
EDGES: dict[str, list[Any]] = {
    "whole": [-(2**31), -1, 0, 1, 5, 2**31 - 1],
    "long": [-(2**63), -1, 0, 5, 2**53 + 1, 2**63 - 1],
    "single": [-math.inf, -0.0, 0.0, 0.10000000149011612, 5.0, math.inf, math.nan],
    "real": [-math.inf, -0.0, 0.0, 0.1, 5.0, 1e300, math.inf, math.nan],
    "money": [Decimal("-1.001"), Decimal("0.000"), Decimal("0.100"), Decimal("5.000"), Decimal("5.001")],
    "word": ["", " ", "a", "ab", "AB", "b\nc", "ünï", "🛫", "5", "null"],
    "other": ["", "a", "b", "ünï"],
    "day": [date(1, 1, 1), date(1969, 12, 31), date(2013, 1, 1), date(2013, 1, 2)],
    "at": [
        datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2013, 1, 1, tzinfo=UTC),
        datetime(2013, 1, 1, 6, 0, 0, 1, tzinfo=UTC),
    ],
    "yes": [True, False],
}
NUMBERS = ("whole", "long", "single", "real", "money")
BOUNDS: dict[str, list[Any]] = {
    **{column: [-1, 0, 0.1, 5, 5.0, "5", 2**53 + 1, 1e300] for column in NUMBERS},
    "day": ["1969-12-31", "2013-01-01", date(2013, 1, 2)],
    "at": ["2013-01-01", "2013-01-01T06:00:00", date(2013, 1, 1), "2013-01-01T06:00:00.000001"],
}
REGEXES = ["", "a", "^a$", "^$", "[A-Z]+", "(?s).*", "b.c", "\\d", "ï"]
PAIRS = [("whole", "long"), ("real", "money"), ("single", "real"), ("day", "at"), ("word", "other"), ("long", "money")]


def rule(name: str, arguments: dict[str, Any]) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=Action.FAIL)


def arrow(rows: list[tuple[Any, ...]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], schema=SCHEMA)


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    # An empty table carries no type over Connect.
    return spark.createDataFrame(arrow(rows), from_arrow_schema(SCHEMA))


def edge_frame(spark: SparkSession) -> DataFrame:
    """Return a frame with every unusual value of each column once."""
    longest = max(map(len, EDGES.values()))
    padded = [[*values, *[None] * (longest - len(values))] for values in EDGES.values()]
    return frame(spark, list(zip(*padded, strict=True)))


def rows() -> st.SearchStrategy[list[tuple[Any, ...]]]:
    values = [st.none() | st.sampled_from(edges) for edges in EDGES.values()]
    return st.lists(st.tuples(*values), max_size=8)


def in_order(bounds: tuple[Any, Any]) -> bool:
    low, high = map(value_bound, bounds)
    return type(low) is type(high) and bool(low <= high)


def between() -> st.SearchStrategy[Expectation]:
    def of_column(column: str) -> st.SearchStrategy[Expectation]:
        bound = st.sampled_from(BOUNDS[column])
        both = st.tuples(bound, bound).filter(in_order)
        bounds = st.one_of(
            bound.map(lambda low: {"min_value": low}),
            bound.map(lambda high: {"max_value": high}),
            both.map(lambda pair: {"min_value": pair[0], "max_value": pair[1]}),
        )
        strict = st.fixed_dictionaries({}, optional={"strict_min": st.booleans(), "strict_max": st.booleans()})
        return st.tuples(bounds, strict).map(
            lambda parts: rule("expect_column_values_to_be_between", {"column": column, **parts[0], **parts[1]})
        )

    return st.sampled_from(sorted(BOUNDS)).flatmap(of_column)


def sets() -> st.SearchStrategy[Expectation]:
    names = ["expect_column_values_to_be_in_set", "expect_column_values_to_not_be_in_set"]
    # PySpark has no literal for the year 1, so Great Expectations cannot check against it.
    values = {column: [value for value in edges if value != date(1, 1, 1)] for column, edges in EDGES.items()}
    return st.sampled_from(sorted(EDGES)).flatmap(
        lambda column: st.tuples(
            st.sampled_from(names), st.lists(st.none() | st.sampled_from(values[column]), min_size=1, max_size=3)
        ).map(lambda parts: rule(parts[0], {"column": column, "value_set": parts[1]}))
    )


def nulls() -> st.SearchStrategy[Expectation]:
    names = ["expect_column_values_to_be_null", "expect_column_values_to_not_be_null"]
    return st.builds(
        lambda name, column: rule(name, {"column": column}), st.sampled_from(names), st.sampled_from([*EDGES])
    )


def regexes() -> st.SearchStrategy[Expectation]:
    names = ["expect_column_values_to_match_regex", "expect_column_values_to_not_match_regex"]
    return st.builds(
        lambda name, regex: rule(name, {"column": "word", "regex": regex}),
        st.sampled_from(names),
        st.sampled_from(REGEXES),
    )


def lengths() -> st.SearchStrategy[Expectation]:
    extra = st.sampled_from([{"min_value": 1}, {"max_value": 2, "strict_max": True}, {"min_value": 1, "max_value": 1}])
    return extra.map(lambda bounds: rule("expect_column_value_lengths_to_be_between", {"column": "word", **bounds}))


def pairs() -> st.SearchStrategy[Expectation]:
    def pair_rule(columns: tuple[str, str], extra: dict[str, Any]) -> Expectation:
        arguments = {"column_A": columns[0], "column_B": columns[1], **extra}
        return rule("expect_column_pair_values_a_to_be_greater_than_b", arguments)

    return st.builds(pair_rule, st.sampled_from(PAIRS), st.sampled_from([{}, {"or_equal": True}, {"or_equal": False}]))


def row_rules() -> st.SearchStrategy[list[Expectation]]:
    parts = [between(), between(), sets(), sets(), nulls(), regexes(), lengths(), pairs()]
    return st.tuples(*parts).map(list)

"""Table rules of every kind on the frames of unusual values, with all their arguments."""

from __future__ import annotations

from datetime import date
from typing import Any

from hypothesis import strategies as st

from millrace.contracts.spec.expectation import Expectation
from tests.support.quality.odd_frames import EDGES, PAIRS, SCHEMA, row_rules, rule

_NUMBERS = ("whole", "long", "single", "real", "money")
_FIGURES: dict[str, list[Any]] = {
    **{column: [-1, 0, 0.1, 5, 2**53 + 1] for column in _NUMBERS},
    "day": ["1969-12-31", "2013-01-01", date(2013, 1, 2)],
    "at": ["2013-01-01T00:00:00", "2013-01-01T06:00:00"],
}
_COUNTS = [0, 1, 2, 5, 8]
_SHARES = [0.0, 0.4, 0.5, 1.0]


def _loose_bounds(values: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    bound = st.sampled_from(values)
    both = st.tuples(bound, bound).map(lambda pair: {"min_value": pair[0], "max_value": pair[1]})
    return st.one_of(bound.map(lambda low: {"min_value": low}), bound.map(lambda high: {"max_value": high}), both)


def _bounds(values: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    strict = st.fixed_dictionaries({}, optional={"strict_min": st.booleans(), "strict_max": st.booleans()})
    return st.tuples(_loose_bounds(values), strict).map(lambda parts: {**parts[0], **parts[1]})


def with_mostly() -> st.SearchStrategy[list[Expectation]]:
    """Return rules on rows, some of which may fail."""
    shares = st.lists(st.none() | st.sampled_from([0.1, 0.5, 0.75, 1, 1.0]), min_size=8, max_size=8)
    return st.tuples(row_rules(), shares).map(
        lambda drawn: [
            row_rule if share is None else rule(row_rule.name, {**row_rule.arguments, "mostly": share})
            for row_rule, share in zip(*drawn, strict=True)
        ]
    )


def figures() -> st.SearchStrategy[Expectation]:
    """Return rules on the least and greatest value, the mean and the sum of a column."""
    of_times = ["expect_column_min_to_be_between", "expect_column_max_to_be_between"]
    of_numbers = [*of_times, "expect_column_mean_to_be_between", "expect_column_sum_to_be_between"]

    def of_column(column: str) -> st.SearchStrategy[Expectation]:
        names = st.sampled_from(of_numbers if column in _NUMBERS else of_times)
        return st.builds(
            lambda name, bounds: rule(name, {"column": column, **bounds}), names, _bounds(_FIGURES[column])
        )

    return st.sampled_from(sorted(_FIGURES)).flatmap(of_column)


def uniqueness() -> st.SearchStrategy[Expectation]:
    """Return rules on the uniqueness of one column, or of two together."""
    share = st.sampled_from([{}, {"mostly": 0.5}, {"mostly": 0.2}])
    one = st.builds(
        lambda column, mostly: rule("expect_column_values_to_be_unique", {"column": column, **mostly}),
        st.sampled_from([*EDGES]),
        share,
    )
    two = st.builds(
        lambda pair, mostly: rule("expect_compound_columns_to_be_unique", {"column_list": [*pair], **mostly}),
        st.sampled_from(PAIRS),
        share,
    )
    return one | two


def distinct() -> st.SearchStrategy[Expectation]:
    """Return rules on the number of distinct values of a column, and on the values."""
    column = st.sampled_from([*EDGES])
    counted = st.builds(
        lambda name, bounds: rule("expect_column_unique_value_count_to_be_between", {"column": name, **bounds}),
        column,
        _bounds(_COUNTS),
    )
    share = st.builds(
        lambda name, bounds: rule(
            "expect_column_proportion_of_unique_values_to_be_between", {"column": name, **bounds}
        ),
        column,
        _bounds(_SHARES),
    )
    values = {"word": ["a", "ab"], "whole": [0, 1, 5], "yes": [True]}
    among = st.builds(
        lambda kind, name: rule(
            f"expect_column_distinct_values_to_{kind}_set", {"column": name, "value_set": values[name]}
        ),
        st.sampled_from(["be_in", "contain", "equal"]),
        st.sampled_from([*values]),
    )
    return counted | share | among


def shapes() -> st.SearchStrategy[Expectation]:
    """Return rules on the rows and columns of the table."""
    names = SCHEMA.names
    return st.one_of(
        _bounds(_COUNTS).filter(_in_order).map(lambda bounds: rule("expect_table_row_count_to_be_between", bounds)),
        st.sampled_from(_COUNTS).map(lambda value: rule("expect_table_row_count_to_equal", {"value": value})),
        _loose_bounds([9, 10, 11]).map(lambda bounds: rule("expect_table_column_count_to_be_between", bounds)),
        st.builds(
            lambda column, index: rule("expect_column_to_exist", {"column": column, **index}),
            st.sampled_from([*names, "wings"]),
            st.sampled_from([{}, {"column_index": 0}, {"column_index": 1}, {"column_index": -1}, {"column_index": 99}]),
        ),
        st.builds(
            lambda columns, exact: rule("expect_table_columns_to_match_set", {"column_set": columns, **exact}),
            st.sampled_from([names, names[:2], [*names, "wings"]]),
            st.sampled_from([{}, {"exact_match": True}, {"exact_match": False}]),
        ),
    )


def table_rules() -> st.SearchStrategy[list[Expectation]]:
    """Return suites with rules of every kind."""
    parts = [figures(), figures(), figures(), uniqueness(), uniqueness(), distinct(), distinct(), shapes(), shapes()]
    return st.tuples(with_mostly(), st.tuples(*parts)).map(lambda drawn: [*drawn[0], *drawn[1]])


def _in_order(bounds: dict[str, Any]) -> bool:
    return (
        bounds.get("min_value") is None or bounds.get("max_value") is None or bounds["min_value"] <= bounds["max_value"]
    )

"""The arguments that specs may give are those of the installed Great Expectations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import types

from millrace.contracts.spec.expectation_arguments import (
    ARGUMENT_SCHEMAS,
    ARGUMENTS,
    BAND_ARGUMENTS,
    COMPARISONS,
    OWN_EXPECTATIONS,
    ROW_EXPECTATIONS,
    VERSION_EXPECTATIONS,
)
from millrace.contracts.spec.gx_expectations import NOT_ON_SPARK, SPARK_TYPES

LEFT_OUT = {
    # The row rule, and the rule of the one pass, could not keep to it.
    "expect_column_pair_values_a_to_be_greater_than_b": {"ignore_row_if"},
    "expect_compound_columns_to_be_unique": {"ignore_row_if"},
    # It reads neither.
    "expect_column_kl_divergence_to_be_less_than": {"min_value", "max_value"},
    # It accepts only its default on Spark.
    "expect_column_quantile_values_to_be_between": {"allow_relative_error"},
}
"""Expectation -> arguments of Great Expectations that specs do not offer."""

GIVEN_BY_MILLRACE = {"regex", "column_set", "column_list", "partition_object", "threshold", "type_list"}
"""Arguments that Great Expectations gives a default which says nothing; a spec must state them."""


@pytest.fixture(scope="module")
def fields_of() -> Any:
    """Return the fields of each Great Expectations class, without the fields that all expectations have."""
    os.environ["GX_ANALYTICS_ENABLED"] = "False"
    from great_expectations.expectations.expectation import BatchExpectation
    from great_expectations.expectations.registry import get_expectation_impl

    common = {*BatchExpectation.__fields__, "row_condition", "condition_parser", "library_metadata"}

    def fields(name: str) -> dict[str, Any]:
        found = get_expectation_impl(name).__fields__
        return {key: field for key, field in found.items() if key not in common}

    return fields


def test_every_core_expectation_may_be_named_or_is_refused_with_a_reason() -> None:
    import great_expectations.expectations.core as core

    # Its rule on a query has no name that starts with expect_.
    names = {path.stem for path in Path(core.__file__).parent.glob("expect_*.py")}
    assert len(names) > 60
    assert names - ARGUMENTS.keys() == NOT_ON_SPARK.keys()


def test_millrace_gives_its_own_expectations_no_name_that_great_expectations_has(fields_of: Any) -> None:
    from great_expectations.exceptions import ExpectationNotFoundError

    assert OWN_EXPECTATIONS
    for name in OWN_EXPECTATIONS:
        with pytest.raises(ExpectationNotFoundError):
            fields_of(name)


def test_each_expectation_is_of_one_kind_and_each_argument_has_a_schema() -> None:
    assert len(ARGUMENTS) == len(ROW_EXPECTATIONS) + len(VERSION_EXPECTATIONS) + len(COMPARISONS) > 30
    assert {argument for takes in ARGUMENTS.values() for argument in takes.all_names} == set(ARGUMENT_SCHEMAS)
    assert set(BAND_ARGUMENTS) <= set(ARGUMENT_SCHEMAS)
    for name in SPARK_TYPES:
        assert issubclass(getattr(types, name), types.DataType)


def test_great_expectations_takes_and_requires_just_these_arguments(fields_of: Any) -> None:
    for name in ARGUMENTS.keys() - OWN_EXPECTATIONS:
        fields, takes = fields_of(name), ARGUMENTS[name]
        assert fields
        assert set(takes.all_names) == set(fields) - LEFT_OUT.get(name, set()), name
        required = {key for key, field in fields.items() if field.required}
        assert required <= set(takes.required) <= required | GIVEN_BY_MILLRACE, name

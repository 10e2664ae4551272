"""Expectations in the form that YAML has, and the actions that they may have."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from pydantic import ValidationError

from millrace.contracts.spec.expectation import Action, Expectation
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, REFERENCES, ROW_EXPECTATIONS

NOT_NULL = {"expect_column_values_to_not_be_null": {"column": "flight_id"}, "action": "quarantine", "reason": "why"}


def test_an_expectation_is_written_in_the_form_it_is_read_in() -> None:
    plain = Expectation(name=next(iter(NOT_NULL)), arguments={"column": "flight_id"}, action="quarantine", reason="why")
    assert Expectation.model_validate(NOT_NULL) == plain
    empty = Expectation.model_validate({"expect_table_row_count_to_be_between": None, "action": "warn"})
    assert empty.arguments == {}
    assert Expectation.model_validate(NOT_NULL).model_dump() == NOT_NULL
    assert Expectation.model_validate_json(Expectation.model_validate(NOT_NULL).model_dump_json()) == (
        Expectation.model_validate(NOT_NULL)
    )


def test_a_rule_on_a_whole_table_cannot_remove_rows() -> None:
    for name, action in product(ARGUMENTS.keys() - ROW_EXPECTATIONS.keys() - REFERENCES.keys(), ("quarantine", "drop")):
        with pytest.raises(ValidationError, match="checks a whole table, so its action is warn or fail"):
            Expectation.model_validate({name: {}, "action": action})


def test_a_rule_on_another_table_may_let_rows_wait_but_not_drop_them() -> None:
    for name in REFERENCES:
        assert Expectation.model_validate({name: {"other_table": "silver.a"}, "action": "quarantine"}).is_reference
        assert not Expectation.model_validate({name: {"other_table": "silver.a"}, "action": "fail"}).is_reference
        with pytest.raises(ValidationError, match="a dropped row cannot wait for the other table"):
            Expectation.model_validate({name: {}, "action": "drop"})


def test_a_rule_on_rows_may_have_every_action() -> None:
    for name, action in product(ROW_EXPECTATIONS, Action):
        rule = Expectation.model_validate({name: {}, "action": action.value})
        assert rule.is_row_rule == (action in (Action.QUARANTINE, Action.DROP))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"action": "warn"}, "exactly one key that starts with expect_, this one has none"),
        ({"expect_column_values_to_be_nul": {}, "action": "warn"}, "unknown expectation"),
        ({"expect_column_to_exist": {}, "action": "warn", "reson": "x"}, "Extra inputs are not permitted"),
        ({"expect_column_to_exist": {}}, "Field required"),
        ("expect_column_to_exist", "valid dictionary"),
    ],
)
def test_what_is_not_an_expectation_is_refused(document: Any, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Expectation.model_validate(document)


def test_refusals_are_counted_under_the_expectation_and_its_columns() -> None:
    for name, arguments, columns in (
        ("expect_column_to_exist", {"column": "a"}, "(a)"),
        ("expect_column_pair_values_a_to_be_greater_than_b", {"column_A": "b", "column_B": "a"}, "(b, a)"),
        ("expect_compound_columns_to_be_unique", {"column_list": ["a", "b"]}, "(a, b)"),
        ("expect_table_row_count_to_equal", {"value": 3}, "()"),
    ):
        assert Expectation.model_validate({name: arguments, "action": "warn"}).rule == f"{name}{columns}"

"""Columns of nested types: where they may be, and what takes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, silver_document, write_specs

ADDRESS = {"address": {"type": "struct<city: string>"}, "tags": {"type": "array<string>"}, "order_id": {}}


def rule(name: str, action: str = "quarantine", **arguments: Any) -> dict[str, Any]:
    return {"expectations": [{name: arguments, "action": action}]}


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"partitioned_by": ["tags"]}, "partitioned_by[0]", "have no order"),
        ({"zorder_by": ["address"]}, "zorder_by[0]", "have no order"),
        (
            rule("expect_column_values_to_be_in_set", column="address", value_set=["x"]),
            "expectations[0].expect_column_values_to_be_in_set.column",
            "address is struct<city: string>, and this rule compares single values",
        ),
        (
            rule("expect_compound_columns_to_be_unique", "fail", column_list=["order_id", "tags"]),
            "expectations[0].expect_compound_columns_to_be_unique.column_list",
            "tags is array<string>, and this rule compares single values",
        ),
    ],
)
def test_what_needs_single_values_refuses_them(tmp_path: Path, changes: dict[str, Any], key: str, message: str) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=ADDRESS, **changes)))
    assert (problem.key, message in problem.message, bool(problem.fix)) == (key, True, True)


SETTINGS: dict[str, Any] = {"keys": ["order_id"], "sequence_by": ["order_id"]}


def test_silver_takes_parts_and_whole_values(tmp_path: Path) -> None:
    columns = {
        **ADDRESS,
        "city": {"from": "address.city"},
        "as_text": {"from": "to_json(address)"},
        "sizes": {"type": "array<int>", "from": "transform(tags, tag -> length(tag))"},
        "first": {"type": "map<string, struct<tag: string>>", "from": "map('first', struct(tags[0] AS tag))"},
    }
    rules = {
        "expectations": [
            {"expect_sql": "size(tags) > 0 AND address.city <> ''", "action": "quarantine"},
            {"expect_column_values_to_not_be_null": {"column": "address"}, "action": "fail"},
        ]
    }
    silver = silver_document(columns=columns, **SETTINGS, **rules, stored_as_scd_type=2)
    assert problems_of(write_specs(tmp_path, bronze_document(columns=ADDRESS), silver)) == ()


def test_a_silver_column_of_a_simple_type_reads_no_whole_nested_value(tmp_path: Path) -> None:
    silver = silver_document(columns={"order_id": {}, "address": {}}, **SETTINGS)
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=ADDRESS), silver))
    assert (problem.key, problem.message) == ("columns.address", "the column of bronze.orders is struct<city: string>")
    assert "write this type" in problem.fix


@pytest.mark.parametrize(
    ("changes", "key"), [({"keys": ["tags"]}, "keys[0]"), ({"sequence_by": ["address"]}, "sequence_by[0]")]
)
def test_nested_values_neither_identify_rows_nor_order_them(tmp_path: Path, changes: dict[str, Any], key: str) -> None:
    silver = silver_document(columns=ADDRESS, **{**SETTINGS, **changes})
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=ADDRESS), silver))
    assert (problem.key, "have no order" in problem.message) == (key, True)

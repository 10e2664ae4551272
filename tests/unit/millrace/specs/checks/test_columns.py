"""Columns, nested ones among them, and arguments that contain lists or mappings: each mistake has its place and fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import assert_rule_refused, only_problem, problems_of, rule
from tests.support.documents.specs import bronze_document, silver_document, write_specs

FILES = {"landing": "orders", "format": "json"}
KAFKA = {"kafka": "main", "topics": ["orders"], "format": "json"}


@pytest.mark.parametrize("source", [FILES, {**FILES, "format": "csv"}, KAFKA], ids=lambda source: str(source))
def test_a_bronze_column_reads_a_field_of_any_name(tmp_path: Path, source: dict[str, Any]) -> None:
    columns = {"order_id": {"from": "Order ID"}, "amount": {"from": "`Amount (EUR).net`"}, "id": {"from": "order_id"}}
    if source["format"] != "csv":
        paths = {"city": "customer.address.city", "name": "customer.`a.b`", "first": "`a.b`[0]"}
        columns |= {name: {"from": path} for name, path in paths.items()}
    assert problems_of(write_specs(tmp_path, bronze_document(source=source, columns=columns))) == ()


@pytest.mark.parametrize(
    ("stated", "fix"),
    [
        ("Amt. EUR", "A field of this name is written '`Amt. EUR`'"),
        ("upper(customer.city)", "state SQL in silver"),
        ("`name", "A field of this name is written '```name`'"),
    ],
)
def test_what_is_no_name_of_a_field_is_refused(tmp_path: Path, stated: str, fix: str) -> None:
    columns = {"order_id": {"from": stated}}
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=columns)))
    assert (problem.key, problem.message) == ("columns.order_id.from", "this is not the name of a field")
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("changes", "columns", "key", "message"),
    [
        ({}, {"a": {}, "b": {"from": "a"}}, "columns.b.from", "the column a reads this field too"),
        ({"field_names": "any_case"}, {"a": {"from": "Id"}, "b": {"from": "ID"}}, "columns.b.from",
         "the column a reads this field too"),
        ({"format": "csv", "header": False}, {"a": {"from": "Id"}}, "columns.a.from", "do not name their fields"),
        ({**KAFKA, "transforms": {"a": "offset"}}, {"a": {"from": "Id"}}, "columns.a.from",
         "an expression of source.transforms fills this column"),
        ({**KAFKA, "format": "csv"}, {"a": {"from": "Id"}}, "columns.a.from", "records do not name their fields"),
        ({"format": "csv"}, {"a": {"from": "b.c"}}, "columns.a.from", "a part of the field b, and CSV values have no"),
        ({}, {"a": {"from": "b.c"}, "d": {"from": "b.c"}}, "columns.d.from", "the column a reads this part too"),
        ({}, {"a": {"from": "b[0]"}, "d": {"from": "b.c"}}, "columns.d.from", "is in a list, and that of the column a"),
        ({}, {"a": {"from": "b.c"}, "b": {}}, "columns.b", "the column a reads a part of this"),
        ({}, {"b": {}, "a": {"from": "b.c"}}, "columns.a.from", "the column b reads the whole of which this is"),
        ({}, {"a": {"from": ".".join("abcdefghijkl")}}, "columns.a.from", "no column reads so deep"),
        ({"field_names": "any_case"}, {"a": {"from": "b.c"}, "d": {"from": "B.C"}}, "columns.d.from",
         "the column a reads this part too"),
    ],
)  # fmt: skip
def test_a_field_that_a_column_cannot_read_is_refused(
    tmp_path: Path, changes: dict[str, Any], columns: dict[str, Any], key: str, message: str
) -> None:
    source = changes if "kafka" in changes else {**FILES, **changes}
    problem = only_problem(write_specs(tmp_path, bronze_document(source=source, columns=columns)))
    assert problem.key == key
    assert message in problem.message
    assert problem.fix


@pytest.mark.parametrize("source", [{**FILES, "format": "csv", "header": False}, {**KAFKA, "format": "csv"}])
def test_only_records_that_name_their_fields_are_read_in_any_case(tmp_path: Path, source: dict[str, Any]) -> None:
    document = bronze_document(source={**source, "field_names": "any_case"})
    assert "is for records that name their fields" in only_problem(write_specs(tmp_path, document)).message


ADDRESS = {"address": {"type": "struct<city: string>"}, "tags": {"type": "array<string>"}, "order_id": {}}
IN_SET, UNIQUE = "expect_column_values_to_be_in_set", "expect_compound_columns_to_be_unique"


@pytest.mark.parametrize(
    ("changes", "key", "message"),
    [
        ({"partitioned_by": ["tags"]}, "partitioned_by[0]", "have no order"),
        ({"subject_keys": {"address": "customer"}}, "subject_keys.address", "identifies nobody"),
        ({"zorder_by": ["address"]}, "zorder_by[0]", "have no order"),
        ({"expectations": rule(IN_SET, column="address", value_set=["x"])}, f"expectations[0].{IN_SET}.column",
         "address is struct<city: string>, and this rule compares single values"),
        ({"expectations": rule(UNIQUE, "fail", column_list=["order_id", "tags"])},
         f"expectations[0].{UNIQUE}.column_list", "tags is array<string>, and this rule compares single values"),
    ],
)  # fmt: skip
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
    rules = rule("expect_column_values_to_not_be_null", "fail", column="address")
    rules += [{"expect_sql": "size(tags) > 0 AND address.city <> ''", "action": "quarantine"}]
    silver = silver_document(columns=columns, **SETTINGS, expectations=rules, stored_as_scd_type=2)
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


QUANTILES = "expect_column_quantile_values_to_be_between"
DIVERGENCE = "expect_column_kl_divergence_to_be_less_than"
PAIRS = "expect_column_pair_values_to_be_in_set"
JSON = "expect_column_values_to_match_json_schema"


def test_sound_arguments_are_accepted(tmp_path: Path) -> None:
    quantiles = {"quantiles": [0.5], "value_ranges": [[None, 5]]}
    bins = {"bins": [0, 1, 2], "weights": [0.25, 0.25], "tail_weights": [0.25, 0.25]}
    rules = [
        rule(QUANTILES, "warn", column="amount", quantile_ranges=quantiles),
        rule(DIVERGENCE, "warn", column="amount", threshold=0.1, partition_object=bins),
        rule(PAIRS, "warn", column_A="amount", column_B="order_id", value_pairs_set=[[1, "a"], [2, None]]),
        rule(JSON, "warn", column="order_id", json_schema={"type": "object", "required": ["id"]}),
    ]
    write_specs(tmp_path, bronze_document(), silver_document(expectations=[one for (one,) in rules]))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "argument", "value", "message", "fix"),
    [
        (QUANTILES, "quantile_ranges", [0.5], "a mapping is needed here", ""),
        (QUANTILES, "quantile_ranges", {"quantiles": [2], "value_ranges": [[0, 1]]}, "quantiles[0]: 2 is greater", ""),
        (QUANTILES, "quantile_ranges", {"quantiles": [0.1, 0.5], "value_ranges": [[0, 1]]}, "are 2 and 1", "write"),
        (QUANTILES, "quantile_ranges", {"quantiles": [0.5], "value_ranges": [[2, 1]]}, "no value", "write [1, 2]"),
        (DIVERGENCE, "partition_object", {"values": ["a"]}, "'weights' is a required property", ""),
        (DIVERGENCE, "partition_object", {"values": ["a"], "weights": [0.5, 0.5]}, "1 parts and 2 weights", "write a"),
        (DIVERGENCE, "partition_object", {"values": [1, 2], "weights": [0.5, 0.2]}, "add up to 0.7, not to 1", ""),
        (PAIRS, "value_pairs_set", [[1, 2], [3]], "[1]: [3] is too short", ""),
        (JSON, "json_schema", {"type": "objekt"}, "no JSON Schema: 'objekt' is not valid", ""),
    ],
)
def test_each_has_its_place(tmp_path: Path, name: str, argument: str, value: Any, message: str, fix: str) -> None:
    columns = {"column_A": "amount", "column_B": "order_id"} if name == PAIRS else {"column": "amount"}
    others = {"threshold": 1} if name == DIVERGENCE else {}
    expectations = rule(name, "warn", **columns, **others, **{argument: value})
    assert_rule_refused(tmp_path, expectations, argument, message, fix)

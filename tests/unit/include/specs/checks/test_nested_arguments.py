"""Arguments that contain lists or mappings, with errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import problem_of_silver, problems_of, rule
from tests.support.documents.specs import bronze_document, silver_document, write_specs

QUANTILES = "expect_column_quantile_values_to_be_between"
DIVERGENCE = "expect_column_kl_divergence_to_be_less_than"
PAIRS = "expect_column_pair_values_to_be_in_set"
JSON = "expect_column_values_to_match_json_schema"


@pytest.mark.parametrize(
    "expectations",
    [
        rule(QUANTILES, "warn", column="amount", quantile_ranges={"quantiles": [0.5], "value_ranges": [[None, 5]]}),
        rule(
            DIVERGENCE,
            "warn",
            column="amount",
            threshold=0.1,
            partition_object={"bins": [0, 1, 2], "weights": [0.25, 0.25], "tail_weights": [0.25, 0.25]},
        ),
        rule(PAIRS, "warn", column_A="amount", column_B="order_id", value_pairs_set=[[1, "a"], [2, None]]),
        rule(JSON, "warn", column="order_id", json_schema={"type": "object", "required": ["id"]}),
    ],
)
def test_sound_arguments_are_accepted(tmp_path: Path, expectations: Any) -> None:
    write_specs(tmp_path, bronze_document(), silver_document(expectations=expectations))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize(
    ("name", "argument", "value", "message", "fix"),
    [
        (QUANTILES, "quantile_ranges", [0.5], "a mapping is needed here", ""),
        (QUANTILES, "quantile_ranges", {"quantiles": [2], "value_ranges": [[0, 1]]}, "quantiles[0]: 2 is greater", ""),
        (
            QUANTILES,
            "quantile_ranges",
            {"quantiles": [0.1, 0.5], "value_ranges": [[0, 1]]},
            "there are 2 and 1",
            "write a [least, greatest]",
        ),
        (QUANTILES, "quantile_ranges", {"quantiles": [0.5], "value_ranges": [[2, 1]]}, "no value", "write [1, 2]"),
        (DIVERGENCE, "partition_object", {"values": ["a"]}, "'weights' is a required property", ""),
        (DIVERGENCE, "partition_object", {"values": ["a"], "weights": [0.5, 0.5]}, "1 parts and 2 weights", "write a"),
        (DIVERGENCE, "partition_object", {"values": [1, 2], "weights": [0.5, 0.2]}, "add up to 0.7, not to 1", ""),
        (PAIRS, "value_pairs_set", [[1, 2], [3]], "[1]: [3] is too short", ""),
        (JSON, "json_schema", {"type": "objekt"}, "no JSON Schema: 'objekt' is not valid", ""),
    ],
)
def test_each_is_named_with_its_place(
    tmp_path: Path, name: str, argument: str, value: Any, message: str, fix: str
) -> None:
    columns = {"column_A": "amount", "column_B": "order_id"} if name == PAIRS else {"column": "amount"}
    others = {"threshold": 1} if name == DIVERGENCE else {}
    problem = problem_of_silver(tmp_path, expectations=rule(name, "warn", **columns, **others, **{argument: value}))
    assert problem.key == f"expectations[0].{name}.{argument}"
    assert message in problem.message
    assert problem.fix.startswith(fix)

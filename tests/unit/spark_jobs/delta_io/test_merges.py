"""The MERGE of rows with actions."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_jobs.delta_io.merges import merge_statement
from spark_jobs.transforms.silver.changes import ABSENT, CHANGES, DELETE, INSERT, UPDATE

CLAUSE_OF = {DELETE: "DELETE", ABSENT: "DELETE", UPDATE: "UPDATE", INSERT: "INSERT"}


def clauses(*actions: str) -> list[str]:
    statement = merge_statement(Path("/lake/t"), ["k", "v"], {"k": "int"}, {"min_k": "1", "max_k": "9"}, actions)
    assert statement.startswith("MERGE INTO delta.`/lake/t` AS t USING changes AS s ON t.`k` = s.`k` AND t.`k` BETWEEN")
    return re.findall(r"THEN (\w+)", statement)


@pytest.mark.parametrize("action", CHANGES)
def test_a_merge_has_the_clause_of_its_only_action_alone(action: str) -> None:
    assert clauses(action) == [CLAUSE_OF[action]]


def test_a_merge_of_all_actions_has_each_clause_once() -> None:
    assert clauses(*CHANGES) == ["DELETE", "UPDATE", "INSERT"]
    assert clauses(INSERT, UPDATE) == clauses(UPDATE, INSERT) == ["UPDATE", "INSERT"]

"""The MERGE of rows with actions, and which columns have statistics."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from spark_jobs.delta_io.merges import merge_statement
from spark_jobs.delta_io.statistics import MAX_COLUMNS, statistics_of
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


COLUMNS = {f"c{number}": "bigint" for number in range(40)} | {"tags": "array<string>", "is_new": "boolean"}


def named(*wanted: str, partitioned_by: tuple[str, ...] = ()) -> list[str]:
    (names,) = statistics_of(wanted, COLUMNS, partitioned_by).values()
    return names.split(",")


def test_they_are_named_in_the_order_of_what_is_wanted_most_each_once() -> None:
    assert named("c3", "c1", "c3") == ["c3", "c1"]


def test_partitions_and_types_without_an_order_have_none() -> None:
    assert named("c1", "tags", "is_new", "c2", partitioned_by=("c2",)) == ["c1"]


def test_of_a_wide_table_the_most_wanted_have_them() -> None:
    found = named("c39", *COLUMNS)
    assert len(found) == MAX_COLUMNS
    assert found[0] == "c39"

"""How many jobs Spark runs for the rules of a table, counted by Spark itself in a driver of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("SPARK_")}
    command = [sys.executable, "-m", "tests.support.spark.gate_driver", str(tmp_path_factory.mktemp("judged"))]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout.splitlines()[-1]))


TO_LIST_FILES = 1
"""Delta runs a job of its own in each query, in which it lists the table's files."""


def test_rules_take_as_many_jobs_as_one_rule_and_samples_one_query_more(counted: dict[str, Any]) -> None:
    assert counted["passed"]["40 rules"] == [True] * 40
    # The first one also reads the table's log.
    assert counted["jobs"]["one rule"] == 3
    assert counted["jobs"]["40 rules"] == TO_LIST_FILES + 1
    assert (len(counted["passed"]["all rules"]), counted["passed"]["all rules"].count(False)) == (64, 40)
    # Rules that count values take no jobs of their own, and all failed ones have their samples by one query.
    assert counted["jobs"]["all rules"] <= (2 * TO_LIST_FILES + 1) + (TO_LIST_FILES + 1)


def test_rules_by_the_change_read_it_once_and_list_the_files_of_each_combination_that_they_count(
    counted: dict[str, Any],
) -> None:
    assert counted["passed"]["40 rules by the change"] == ["the change since version 0"] * 40
    assert counted["jobs"]["40 rules by the change"] == 1
    assert counted["passed"]["all rules by the change"] == ["the change since version 0"] * 64
    # Delta looks for the files of two columns' values, and for those of a pair of columns.
    assert counted["jobs"]["all rules by the change"] == 1 + 3 * TO_LIST_FILES + 1


def test_great_expectations_is_not_imported_for_any_of_them(counted: dict[str, Any]) -> None:
    assert counted["imported"] is False

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


def test_forty_rules_take_at_most_three_jobs_and_as_many_as_one_rule(counted: dict[str, Any]) -> None:
    assert len(counted["passed"]["40 rules that pass"]) == 40
    assert all(counted["passed"]["40 rules that pass"])
    # The first one also reads the table's log.
    assert counted["jobs"]["one rule"] == 3
    assert counted["jobs"]["40 rules that pass"] == TO_LIST_FILES + 1


def test_samples_of_all_failed_rules_take_one_query_more(counted: dict[str, Any]) -> None:
    assert counted["passed"]["40 rules, 20 of them failed"].count(False) == 20
    assert counted["jobs"]["40 rules, 20 of them failed"] == 2 * (TO_LIST_FILES + 1)


def test_rules_that_count_values_take_no_jobs_of_their_own(counted: dict[str, Any]) -> None:
    assert len(counted["passed"]["rules of all kinds that pass"]) == 64
    assert all(counted["passed"]["rules of all kinds that pass"])
    assert counted["jobs"]["rules of all kinds that pass"] <= 2 * TO_LIST_FILES + 1
    assert counted["passed"]["rules of all kinds, 40 of them failed"].count(False) == 40
    more = counted["jobs"]["rules of all kinds, 40 of them failed"] - counted["jobs"]["rules of all kinds that pass"]
    assert more == TO_LIST_FILES + 1


def test_rules_by_the_change_read_it_once_and_list_the_files_of_each_combination_that_they_count(
    counted: dict[str, Any],
) -> None:
    assert counted["passed"]["40 rules by the change"] == ["the change since version 0"] * 40
    assert counted["jobs"]["40 rules by the change"] == 1
    assert counted["passed"]["rules of all kinds by the change"] == ["the change since version 1"] * 64
    # Delta looks for the files of two columns' values, and for those of a pair of columns.
    assert counted["jobs"]["rules of all kinds by the change"] == 1 + 3 * TO_LIST_FILES + 1


def test_great_expectations_is_not_imported_for_any_of_them(counted: dict[str, Any]) -> None:
    assert counted["imported"] is False

"""The landing folders of a table that several runs may load at the same time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, silver_document, write_specs

FOLDER = {"landing": "orders", "format": "json"}
KAFKA = {"kafka": "main", "topics": ["orders"], "format": "json"}


@pytest.mark.parametrize(
    "path",
    ["date={interval_start:%Y-%m-%d}", "{interval_start.year}/{interval_start.month:02d}", "h={interval_start:%H}"],
)
def test_each_interval_may_have_a_stream_if_it_has_a_folder(tmp_path: Path, path: str) -> None:
    document = bronze_document(source={**FOLDER, "path": path}, concurrent_by="interval")
    assert problems_of(write_specs(tmp_path, document, silver_document())) == ()


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ({**FOLDER, "path": "."}, "give each interval its own folder: path: date={interval_start:%Y-%m-%d}"),
        ({**FOLDER, "path": "{interval_end:%Y-%m-%d}"}, "give each interval its own folder"),
        ({**FOLDER, "path": "{interval_start:%Y-%m-%d}_{interval_end:%d}"}, "name the folder by interval_start alone"),
        (KAFKA, "leave it out: the messages of a topic have no interval"),
    ],
)
def test_a_file_that_several_intervals_could_load_allows_one_stream_only(
    tmp_path: Path, source: dict[str, Any], fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(source=source, concurrent_by="interval")))
    assert (problem.key, problem.value) == ("concurrent_by", "interval")
    assert "could be loaded by the runs of several intervals" in problem.message
    assert problem.fix.startswith(fix)


def test_other_ways_to_divide_a_table_are_unknown(tmp_path: Path) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(concurrent_by="intervall")))
    assert (problem.key, problem.value, problem.fix) == ("concurrent_by", "intervall", "did you mean 'interval'?")


@pytest.mark.parametrize("document", [silver_document(concurrent_by="interval")])
def test_only_bronze_tables_have_streams(tmp_path: Path, document: dict[str, Any]) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(), document))
    assert problem.key == "concurrent_by"


@pytest.mark.parametrize(
    ("rule", "key", "fix"),
    [
        ({"expect_table_to_be_fresh": {"column": "event_at", "max_age": "1 days"}}, "", "write as_of: commit"),
        (
            {"expect_table_row_count_to_be_near_median": {"rows": "applied", "of_last": 7, "min_percent": 50}},
            ".rows",
            "write rows: in_table",
        ),
    ],
)
def test_a_rule_on_one_run_needs_a_certificate_of_its_own(
    tmp_path: Path, rule: dict[str, Any], key: str, fix: str
) -> None:
    rules = [{**rule, "action": "fail"}]
    assert problems_of(write_specs(tmp_path / "one", bronze_document(expectations=rules))) == ()
    document = bronze_document(expectations=rules, concurrent_by="interval")
    problem = only_problem(write_specs(tmp_path / "several", document))
    assert problem.key == f"expectations[0].{next(iter(rule))}{key}"
    assert problem.fix.startswith(fix)


def test_full_snapshots_need_a_source_with_one_order(tmp_path: Path) -> None:
    silver = silver_document(snapshot="full", sequence_by=[])
    problem = only_problem(write_specs(tmp_path, bronze_document(concurrent_by="interval"), silver))
    assert (problem.key, problem.fix) == ("snapshot", "remove concurrent_by from the spec of bronze.orders")

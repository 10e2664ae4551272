"""The error about refused specs, as a whole."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from include.errors import ExitCode
from include.specs.checks.sql import checked_catalog
from include.specs.problem import SpecsRefusedError
from tests.support.documents.refusals import rule
from tests.support.documents.specs import bronze_document, gold_document, silver_document, write_spec, write_specs


def test_every_problem_of_every_file_is_reported_at_once(tmp_path: Path) -> None:
    write_specs(tmp_path, bronze_document(owner=7), gold_document(refresh_by="dya"))
    write_specs(tmp_path, silver_document(kees=1, zorder_by=["x"], expectations=rule("expect_x")))
    write_spec(tmp_path, "silver/shop/broken.yaml", "a: [")
    with pytest.raises(SpecsRefusedError) as refused:
        checked_catalog(tmp_path)
    places = [(problem.file, problem.line) for problem in refused.value.problems]
    assert places == sorted(places)
    found = [(problem.file.name, problem.key) for problem in refused.value.problems]
    assert sorted(found) == [
        ("broken.yaml", ""),
        ("orders.yaml", "expectations[0].expect_x"),
        ("orders.yaml", "kees"),
        ("orders.yaml", "owner"),
        ("orders.yaml", "zorder_by[0]"),
        ("revenue_daily.yaml", "refresh_by"),
    ]


def test_the_message_names_file_line_key_value_and_fix(tmp_path: Path) -> None:
    path = write_spec(
        tmp_path,
        "bronze/shop/x.yaml",
        "# words\ntable: bronze.x\nsource: {landing: x, format: jsn}\ncolumns:\n  a: {}\n",
    )
    with pytest.raises(SpecsRefusedError) as refused:
        checked_catalog(tmp_path)
    first, second = str(refused.value).split("\n")
    assert first == "1 problem in 1 table spec: fix the lines below, then `lakehouse check`"
    assert second == f"  {path}:3: source.format: unknown value (got 'jsn'); did you mean 'json'?"
    assert refused.value.exit_code is ExitCode.BAD_SPEC


def test_the_error_survives_pickling(tmp_path: Path) -> None:
    write_specs(tmp_path, bronze_document(owner=7))
    with pytest.raises(SpecsRefusedError) as refused:
        checked_catalog(tmp_path)
    copied = pickle.loads(pickle.dumps(refused.value))
    assert (copied.problems, str(copied)) == (refused.value.problems, str(refused.value))

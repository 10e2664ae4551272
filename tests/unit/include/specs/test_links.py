"""Specs of two layers that do not agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, silver_document, write_specs

SOURCE = {"landing": "orders", "files": "*.json", "format": "json"}


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"snapshot": "full", "sequence_by": []}, "snapshot", "its intervals do not delimit snapshots", "path"),
        ({"sequence_by": []}, "source", "its intervals do not order its rows", "sequence_by"),
    ],
)
def test_silver_cannot_be_ordered_by_interval_if_its_source_has_one_folder(
    tmp_path: Path, changes: dict[str, Any], key: str, message: str, fix: str
) -> None:
    by_interval, in_one_folder = (bronze_document(source={**SOURCE, **path}) for path in ({}, {"path": "."}))
    assert problems_of(write_specs(tmp_path, by_interval, silver_document(**changes))) == ()
    problem = only_problem(write_specs(tmp_path, in_one_folder, silver_document(**changes)))
    assert (problem.file.name, problem.key) == ("orders.yaml", key)
    assert message in problem.message
    assert fix in problem.fix

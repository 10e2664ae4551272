"""The figures of the last checked version: what is kept of them, and when the next gate may begin with them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.gates.judged_figures import JudgedFigures, kept_figures, newer_figures
from millrace.control.log.batch import BatchSources
from millrace.control.log.delta_log import commit_mark, latest_version
from tests.support.ledger.delta_tables import append, commit, commit_file, create_table, intent_of, optimize

VALUES = st.one_of(
    st.integers(), st.floats(), st.decimals(allow_nan=False, allow_infinity=False), st.dates(), st.none()
)


def figures_of(path: Path, table_id: str, version: int, **changes: Any) -> JudgedFigures:
    judged = JudgedFigures(table_id=table_id, version=version, mark=commit_mark(path, version), rules="r", rows=1)
    return judged.model_copy(update=changes)


@settings(max_examples=40)
@given(st.dictionaries(st.text(), VALUES))
def test_every_figure_is_read_back_exactly(figures: dict[str, Any]) -> None:
    judged = JudgedFigures(table_id="t", version=1, mark="m", rules="r", rows=1, figures=kept_figures(figures))
    stored = json.loads(json.dumps(judged.model_dump(mode="json", exclude_defaults=True)))
    known = JudgedFigures.model_validate(stored).known(figures)
    assert known.keys() == figures.keys()
    for name, value in figures.items():
        assert type(known[name]) is type(value)
        assert known[name] == value or (isinstance(value, float) and math.isnan(value) and math.isnan(known[name]))


def test_only_numbers_and_dates_are_kept_and_in_their_form() -> None:
    assert kept_figures({"a": "text", "b": True, "c": [1]}) == {}
    kept = kept_figures({"a": date(1, 1, 1), "b": Decimal("0E-3")})
    assert sorted(kept.values()) == ["Decimal 0.000", "date 0001-01-01"]
    judged = JudgedFigures(table_id="t", version=1, mark="m", rules="r", rows=1, figures=kept_figures({"a": 1}))
    assert judged.known(["a", "b"]) == {"a": 1}


def test_batches_and_optimize_lead_from_one_version_to_the_next(tmp_path: Path) -> None:
    table_id = create_table(tmp_path)
    commit(tmp_path, intent_of(table_id, 1), rows=2)
    judged = figures_of(tmp_path, table_id, 1)
    assert judged.batches_upto(tmp_path, 1) == []
    commit(tmp_path, intent_of(table_id, 2))
    optimize(tmp_path)
    commit(tmp_path, intent_of(table_id, 3))
    batches = judged.batches_upto(tmp_path, latest_version(tmp_path))
    assert batches is not None
    assert [batch.version for batch in batches] == [2, 4]
    assert [batch.version for batch in judged.batches_upto(tmp_path, 3) or ()] == [2], "later commits do not count"
    assert judged.batches_upto(tmp_path, 0) is None, "an earlier version does not follow"


def drop_a_commit(path: Path, table_id: str) -> None:
    for number in (2, 3):
        commit(path, intent_of(table_id, number))
    commit_file(path, 2).unlink()


CHANGES: dict[str, Callable[[Path, str], object]] = {
    "another tool": lambda path, _: append(path),
    "a restore": lambda path, table_id: commit(path, intent_of(table_id, 2, sources=BatchSources(restores=0))),
    "a rebuild": lambda path, table_id: commit(path, intent_of(table_id, 2, sources=BatchSources(rebuild="b1"))),
    "a missing commit": drop_a_commit,
    "another log": lambda path, _: commit_file(path, 1).write_text(commit_file(path, 1).read_text() + "\n"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_after_anything_but_a_batch_nothing_follows(tmp_path: Path, change: str) -> None:
    table_id = create_table(tmp_path)
    commit(tmp_path, intent_of(table_id, 1))
    judged = figures_of(tmp_path, table_id, 1)
    CHANGES[change](tmp_path, table_id)
    assert judged.batches_upto(tmp_path, latest_version(tmp_path)) is None


def test_figures_of_an_older_version_do_not_replace_newer_ones(tmp_path: Path) -> None:
    table_id = create_table(tmp_path)
    older = figures_of(tmp_path, table_id, 0)
    newer = older.model_copy(update={"version": 5})
    assert newer_figures(newer, older) is newer
    assert newer_figures(older, newer) is newer
    assert newer_figures(None, older) is older
    assert newer_figures(newer.model_copy(update={"table_id": "another"}), older) is older, "another table"

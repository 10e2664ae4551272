"""The tables that may delete their tombstones, and the errors for other tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from include.catalog import load_catalog
from include.contracts.spec.table_spec import SilverSpec
from include.specs.schema import table_spec_schema
from tests.support.documents.refusals import only_problem, problem_of_gold, problem_of_silver, problems_of
from tests.support.documents.specs import bronze_document, gold_document, silver_document, silver_spec, write_specs

DELETES = {"apply_as_deletes": "amount = 0"}
NEEDED = "this table needs its deleted keys"


def with_retention(retain: Any = "400 days", **changes: Any) -> dict[str, Any]:
    """Return the spec of a silver table that deletes its tombstones."""
    return {**DELETES, "maintenance": {"tombstones": {"retain": retain}}, **changes}


@pytest.mark.parametrize(
    ("retain", "more"), [("400 days", {"stored_as_scd_type": 1}), ("36 hours", {"apply_as_truncates": "amount < 0"})]
)
def test_a_table_that_keeps_the_last_state_may_delete_tombstones(
    tmp_path: Path, retain: str, more: dict[str, Any]
) -> None:
    history = silver_document(**DELETES, stored_as_scd_type=2, maintenance={"tombstones": {"retain": None}})
    assert problems_of(write_specs(tmp_path, bronze_document(), history)) == (), "where none is stated, they are kept"
    document = silver_document(**with_retention(retain, **more))
    spec = load_catalog(write_specs(tmp_path, bronze_document(), document)).spec("silver.orders")
    assert isinstance(spec, SilverSpec)
    assert spec.maintenance.tombstones.retain == retain
    jsonschema.Draft202012Validator(table_spec_schema()).validate(document)
    assert spec.spec_hash == silver_spec(**{**DELETES, **more}).spec_hash, "no row changes because of it"


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        (
            with_retention(stored_as_scd_type=2),
            NEEDED,
            "leave it out: deleted keys are then kept for ever; or leave out stor",
        ),
        (
            with_retention(ignore_null_updates=True),
            NEEDED,
            "leave it out: deleted keys are then kept for ever; or leave out",
        ),
        (
            with_retention(snapshot="full", sequence_by=[], apply_as_deletes=None),
            "a full snapshot leaves no tombstones",
            "leave it out",
        ),
        (with_retention(apply_as_deletes=None), "no event of this table deletes a key", "state apply_as_deletes"),
        (with_retention("1 year"), "'1 year' is not a retention; write it as '168 hours' or '7 days'", ""),
    ],
)
def test_a_table_that_needs_its_tombstones_is_refused_with_its_likely_fix(
    tmp_path: Path, changes: dict[str, Any], message: str, fix: str
) -> None:
    problem = problem_of_silver(tmp_path, **changes)
    assert (problem.key, problem.value) == (
        "maintenance.tombstones.retain",
        changes["maintenance"]["tombstones"]["retain"],
    )
    assert problem.message.startswith(message)
    assert problem.fix.startswith(fix)
    text = problem.file.read_text().splitlines()[problem.line - 1]
    assert text.strip().startswith("retain:")


def test_the_other_layers_have_no_tombstones(tmp_path: Path) -> None:
    stated = {"maintenance": {"tombstones": {"retain": "400 days"}}}
    gold = problem_of_gold(tmp_path / "gold", **stated)
    bronze = only_problem(write_specs(tmp_path / "bronze", bronze_document(**stated)))
    for problem in (gold, bronze):
        assert (problem.key, problem.message) == ("maintenance.tombstones", "unknown key")
    refused = [bronze_document(**stated), gold_document(**stated)]
    validator = jsonschema.Draft202012Validator(table_spec_schema())
    assert [validator.is_valid(document) for document in refused] == [False, False]

"""Silver tables with a list of sources or without their tombstones, and the errors for those that cannot be right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from millrace.catalog import load_catalog
from millrace.specs.checks.sql import sql_problems
from millrace.specs.schema import table_spec_schema
from tests.support.documents.refusals import only_problem, problem_of_gold, problem_of_silver, problems_of
from tests.support.documents.specs import (
    Document,
    bronze_document,
    gold_document,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.silver.two_shops import BRANCH, SILVER, WEB, two_shops


def changed(**of_branch: Any) -> list[Document]:
    """Return the specs with these keys in the second source."""
    *bronze, silver = two_shops()
    first, second = silver["sources"]
    return [*bronze, {**silver, "sources": [first, {**second, **of_branch}]}]


def test_each_source_has_its_own_columns_and_deletes(tmp_path: Path) -> None:
    catalog = load_catalog(write_specs(tmp_path, *two_shops()))
    assert [*catalog.problems, *sql_problems(catalog)] == []
    spec = catalog.spec(SILVER)
    jsonschema.Draft202012Validator(table_spec_schema()).validate(two_shops()[-1])
    web, branch = (spec.of_source(table) for table in spec.source_tables)
    assert [(each.source, each.apply_as_deletes) for each in (web, branch)] == [
        (WEB, "op = 'delete'"),
        (BRANCH, "gone"),
    ]
    assert [each.columns["amount"].expression for each in (web, branch)] == [None, "cents div 100"]
    assert {each.columns["shop"].expression for each in (web, branch)} == {"_source_table"}
    keys = {table: catalog.needed_columns(catalog.spec(table)) for table in spec.source_tables}
    assert keys == {WEB: {"order_id"}, BRANCH: {"number"}}, "of a file"


@pytest.mark.parametrize(
    ("documents", "key", "message", "fix"),
    [
        (changed(table=WEB), "sources[1].table", "the list has this source already", "leave one out"),
        (changed(table="bronze.brunch_orders"), "sources[1].table", "no spec creates this table", BRANCH),
        (changed(table="silver.customers"), "sources[1].table", "a bronze table is written", "by a `query`"),
        (two_shops(sources=None, source="silver.customers"), "source", "a bronze table is written", "by a `query`"),
        (changed(columns={"order_id": "1", "amount": "2", "total": "3"}), "sources[1].columns.total", "no such", ""),
        (changed(columns={"order_id": "number"}), "columns.amount", f"{BRANCH} has no column", f"columns of {BRANCH}"),
        (changed(rows=3), "sources[1].rows", "unknown key", ""),
        (two_shops(source=WEB), "sources", "stated twice", ""),
        (two_shops(snapshot="full", sequence_by=[], apply_as_deletes=None), "snapshot", "keys of the others", "source"),
        (two_shops(source_priority="first"), "source_priority", "unknown value", "before_sequence"),
        (two_shops(source_priority="after_sequence", stored_as_scd_type=2), "source_priority", "periods", "leave it"),
        (two_shops(sources=None, source_priority="before_sequence", source=WEB), "source_priority", "list", "sources"),
        (two_shops(sources=[]), "source", "the key is missing", ""),
    ],
)
def test_a_list_of_sources_that_cannot_be_right_is_refused(
    tmp_path: Path, documents: list[Document], key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, *documents))
    assert (problem.key, problem.file.name) == (key, "orders.yaml")
    assert message in problem.message
    assert fix in problem.fix


def test_the_sql_of_each_source_is_checked_against_its_own_columns(tmp_path: Path) -> None:
    folder = write_specs(tmp_path, *changed(columns={"order_id": "number", "amount": "op"}, apply_as_deletes="goner"))
    assert problems_of(folder) == ()
    found = {problem.key: problem.message for problem in sql_problems(load_catalog(folder))}
    assert found == {
        "sources[1].columns.amount": f"there is no column 'op' in {BRANCH}",
        "sources[1].apply_as_deletes": f"there is no column 'goner' in {BRANCH}",
    }


def test_the_table_that_a_row_came_from_is_known_only_of_a_list_of_sources(tmp_path: Path) -> None:
    web, _, silver = two_shops(sources=None, source=WEB)
    [problem] = sql_problems(load_catalog(write_specs(tmp_path, web, silver)))
    assert (problem.key, problem.value) == ("columns.shop.from", "_source_table")
    assert "list of sources" in problem.message


DELETES = {"apply_as_deletes": "amount = 0"}
NEEDED = "this table needs its deleted keys"


def with_retention(retain: Any = "400 days", **changes: Any) -> dict[str, Any]:
    """Return the spec of a silver table that deletes its tombstones."""
    return {**DELETES, "maintenance": {"tombstones": {"retain": retain}}, **changes}


@pytest.mark.parametrize(
    ("retain", "more"), [("400 days", {"stored_as_scd_type": 1}), ("36 hours", {"apply_as_truncates": "amount < 0"})]
)
def test_a_table_that_keeps_the_last_state_may_delete_tombstones(tmp_path: Path, retain: str, more: Document) -> None:
    history = silver_document(**DELETES, stored_as_scd_type=2, maintenance={"tombstones": {"retain": None}})
    assert problems_of(write_specs(tmp_path, bronze_document(), history)) == (), "where none is stated, they are kept"
    document = silver_document(**with_retention(retain, **more))
    spec = load_catalog(write_specs(tmp_path, bronze_document(), document)).spec("silver.orders")
    assert spec.maintenance.tombstones.retain == retain
    jsonschema.Draft202012Validator(table_spec_schema()).validate(document)
    assert spec.spec_hash == silver_spec(**{**DELETES, **more}).spec_hash, "no row changes because of it"


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        (with_retention(stored_as_scd_type=2), NEEDED, "leave it out: deleted keys are then kept for ever; or leave"),
        (with_retention(ignore_null_updates=True), NEEDED, "leave it out: deleted keys are then kept for ever"),
        (with_retention(snapshot="full", sequence_by=[], apply_as_deletes=None), "a full snapshot leaves no", "leave"),
        (with_retention(apply_as_deletes=None), "no event of this table deletes a key", "state apply_as_deletes"),
        (with_retention("1 year"), "'1 year' is not a retention; write it as '168 hours' or '7 days'", ""),
    ],
)
def test_a_table_that_needs_its_tombstones_is_refused_with_its_likely_fix(
    tmp_path: Path, changes: Document, message: str, fix: str
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

"""When maintenance verifies a gold table: rows that nobody has compared yet, of a table that is computed in parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import VALUES_TO_VERIFY, GoldSpec
from millrace.control.gates.result import GateResult
from millrace.control.maintenance.verification_due import record_verified, why_not_due
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import (
    Document,
    bronze_document,
    catalog_of,
    gold_document,
    gold_query_spec,
    gold_spec,
    query_document,
    silver_document,
    silver_spec,
    write_specs,
)
from tests.support.ledger.delta_tables import append, create_table, judge, load_batch, optimize

SPEC = gold_spec()
GOLD = SPEC.table


def due(ops: OpsTables, spec: GoldSpec = SPEC) -> str:
    return why_not_due(spec, catalog_of(silver_spec(), spec), ops)


def test_the_rows_of_a_version_are_verified_once_and_never_those_of_another_spec(tmp_path: Path) -> None:
    ops = OpsTables(paths := LakehousePaths(tmp_path))
    assert due(ops) == f"{GOLD} has no certified version to verify"
    first = load_batch(tmp_path, SPEC)
    ops.specs.record(SPEC, first.intent.table_id)
    judge(tmp_path, SPEC, first.version)
    assert not due(ops)
    record_verified(GOLD, ops.gates.verdicts(GOLD), {}, ops)
    assert due(ops) == f"{GOLD}: the rows of version {first.version} were verified already"
    append(paths.table(GOLD))
    assert "were verified already" in due(ops), "no gate has passed the rows of another tool yet"

    second = load_batch(tmp_path, SPEC)
    judge(tmp_path, SPEC, second.version)
    optimize(paths.table(GOLD))
    assert not due(ops)
    changed = gold_spec(measures={"orders": "count(*)", "revenue": "max(o.amount)"})
    assert due(ops, changed).startswith(f"{GOLD}: its spec has changed since version {second.version}: ")
    wrong = GateResult(
        table=GOLD, table_id=second.intent.table_id, version=second.version, suite_hash=SPEC.suite_hash, passed=False,
        is_verification=True,
    )  # fmt: skip
    ops.gates.record(wrong)
    assert due(ops) == f"{GOLD}: a verification has found version {second.version} wrong already"


def test_a_query_is_verified_by_the_column_that_was_found_and_not_one_that_is_computed_whole(tmp_path: Path) -> None:
    ops, query = OpsTables(LakehousePaths(tmp_path)), gold_query_spec()
    batch = load_batch(tmp_path, query)
    ops.specs.record(query, batch.intent.table_id)
    judge(tmp_path, query, batch.version)
    assert not due(ops, query)
    whole = gold_query_spec(query="SELECT max(day) AS day, max(order_id) AS order_id, 1 AS amount FROM o")
    assert "each run computes all of it: it comes out of MAX" in due(ops, whole)


def test_a_table_that_only_other_tools_have_written_has_unknown_sources(tmp_path: Path) -> None:
    ops = OpsTables(paths := LakehousePaths(tmp_path))
    create_table(paths.table(GOLD))
    judge(tmp_path, SPEC, version := append(paths.table(GOLD)))
    assert due(ops) == f"{GOLD}: no batch has written version {version}, so that its sources are unknown"


@pytest.mark.parametrize(
    ("document", "values"),
    [
        (gold_document(maintenance={"verify": 4}), 4),
        (gold_document(), VALUES_TO_VERIFY),
        (gold_document(maintenance={"verify": "off"}), 0),
        (gold_document(maintenance={"verify": 0}), 0),
        (query_document("gold.revenue_daily"), VALUES_TO_VERIFY),
        (query_document("gold.revenue_daily", refresh="full"), 0),
    ],
    ids=["so many", "by default", "off", "none", "a query by a column that is found", "a query as a whole"],
)
def test_some_values_are_verified_unless_the_spec_says_no_or_each_run_computes_all(
    tmp_path: Path, document: Document, values: int
) -> None:
    write_specs(tmp_path, bronze_document(), silver_document(), document)
    spec = load_catalog(tmp_path).spec(GOLD)
    assert isinstance(spec, GoldSpec)
    assert spec.values_to_verify == values

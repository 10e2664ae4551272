"""What a task tells OpenLineage of tables: names, types, inputs, and the results of rules."""

from __future__ import annotations

import multiprocessing
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.schema import Field, PrimitiveType

from lakehouse_airflow.lineage.datasets import name_of, names_of_source, schema_fields, stored_types, table_facets
from lakehouse_airflow.lineage.task_lineage import lineage_of_write, quality_facets
from millrace.catalog import load_catalog
from millrace.contracts.job.args import Job
from millrace.contracts.job.report import CheckResult, JobReport, RowCounts
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import PinnedTable
from millrace.errors import Outcome
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.documents.specs import bronze_document, bronze_spec, gold_spec, silver_spec, write_specs
from tests.support.ledger.delta_tables import append, create_table, day, load_batch, sources_reading
from tests.support.silver.known_customers import BRONZE_ORDERS, CUSTOMERS, ORDERS, shop_documents

CLUSTERS = {"main": {"bootstrap.servers": "broker-1:9092,broker-2:9092", "sasl.password": "secret"}}


@pytest.mark.parametrize(
    ("root", "namespace", "name"),
    [("/lake", "file", "/lake/silver/orders"), ("s3a://lake/tables", "s3://lake", "tables/silver/orders")],
)
def test_a_table_is_named_by_its_place(root: str, namespace: str, name: str) -> None:
    dataset = name_of(Settings(root=root).paths.table("silver.orders"))
    assert (dataset.get_namespace(), dataset.get_name()) == (namespace, name)


@pytest.mark.parametrize(
    ("landing", "root", "namespace", "name"),
    [
        ("orders", "/landing", "file", "/landing/orders"),
        ("orders", "s3://in/all", "s3://in", "all/orders"),
        ("s3://shop/out", "/landing", "s3://shop", "out"),
    ],
)
def test_landing_files_are_named_by_their_folder(landing: str, root: str, namespace: str, name: str) -> None:
    source = bronze_spec(source={"landing": landing, "format": "json"}).source
    [dataset] = names_of_source(source, Settings(landing=root))
    assert (dataset.get_namespace(), dataset.get_name()) == (namespace, name)


def test_topics_are_named_by_the_first_broker_and_of_a_pattern_those_that_were_read() -> None:
    for topics, read in (({"topics": ["a", "b"]}, ()), ({"topic_pattern": "[ab]"}, ("b", "a"))):
        source = bronze_spec(source={"kafka": "main", "format": "json", **topics}).source
        datasets = names_of_source(source, Settings(kafka=CLUSTERS), read)
        assert [(one.get_namespace(), one.get_name()) for one in datasets] == [
            ("kafka://broker-1:9092", "a"),
            ("kafka://broker-1:9092", "b"),
        ]


def test_of_an_unknown_version_a_gold_column_has_its_newest_type(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), pa.schema([("day", pa.date32())]))
    types = {field.name: field.type for field in schema_fields(gold_spec(), tmp_path, None)}
    assert types == {"day": "date", "orders": None, "revenue": None}


ROW = pa.table({"n": [1], "day": [date(2013, 1, 1)]})
NARROW, WIDE = {"n": "long"}, {"n": "long", "day": "date"}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table with one column up to version 2, with two from version 3 on, and a checkpoint of version 5."""
    path = tmp_path / "gold" / "days"
    create_table(path)
    for _ in range(2):
        append(path)
    DeltaTable(str(path)).alter.add_columns([Field("day", PrimitiveType("date"))])
    for _ in range(2):
        write_deltalake(str(path), ROW, mode="append")
    DeltaTable(str(path)).create_checkpoint()
    write_deltalake(str(path), ROW, mode="append")
    assert (path / "_delta_log" / f"{5:020d}.checkpoint.parquet").exists()
    return path


def test_each_version_has_the_types_of_its_own_columns(table: Path) -> None:
    assert stored_types(table.parent, 3) == {}, "no table is there"
    assert [stored_types(table, version) for version in range(7)] == [NARROW] * 3 + [WIDE] * 4


def test_the_checkpoint_has_the_types_when_older_commits_are_gone(table: Path) -> None:
    for version in range(5):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert [stored_types(table, version) for version in (4, 5, 6)] == [{}, WIDE, WIDE]


def test_a_fork_of_a_process_that_has_used_delta_rs_reads_them(table: Path) -> None:
    assert DeltaTable(str(table)).to_pyarrow_table().num_rows == 5
    with multiprocessing.get_context("fork").Pool(1) as fork:
        assert fork.apply_async(stored_types, (table, 6)).get(timeout=60) == WIDE


CHECKS = (
    CheckResult(rule="expect_table_row_count_to_be_between()", action="fail", passed=True, observed=7),
    CheckResult(
        rule="expect_column_max_to_be_between(delay)",
        action="warn",
        passed=False,
        observed=99.5,
        expected={"max_value": 9},
    ),
    CheckResult(
        rule="expect_column_distinct_values_to_be_in_set(status)",
        action="fail",
        passed=False,
        observed=["a-value"],
        samples=("a-value",),
        unexpected_rows=2,
    ),
    CheckResult(rule="expect_compound_columns_to_be_unique(a, b)", action="fail", passed=True),
    CheckResult(rule="expect_table_columns_to_be_stable()", action="warn", passed=True, not_judged="no past"),
)


def test_each_checked_rule_is_an_assertion_without_values_of_rows() -> None:
    facet = quality_facets(CHECKS)["dataQualityAssertions"]
    found = [(one.column, one.success, one.severity, one.actual, one.expected) for one in facet.assertions]
    assert found == [
        (None, True, "error", "7", None),
        ("delay", False, "warn", "99.5", '{"max_value": 9}'),
        ("status", False, "error", "2", None),
        (None, True, "error", None, None),
    ]
    assert "a-value" not in str(facet)


def test_the_figures_that_rules_observed_are_metrics() -> None:
    facet = quality_facets(CHECKS)["dataQualityMetrics"]
    assert facet.rowCount == 7
    assert {name: metrics.max for name, metrics in facet.columnMetrics.items()} == {"delay": 99.5}
    assert quality_facets(()) == {}, "a gate without rules has no result"


def test_the_table_for_whose_rows_others_wait_is_an_input_with_the_version_that_was_looked_into(tmp_path: Path) -> None:
    write_specs(tmp_path / "specs", *shop_documents())
    specs, paths = load_catalog(tmp_path / "specs").specs, LakehousePaths(tmp_path / "lake")
    for table in (BRONZE_ORDERS, CUSTOMERS):
        load_batch(paths.root, specs[table])
    looked_into = load_batch(paths.root, specs[CUSTOMERS]).version
    pinned = PinnedTable(table_id=table_id(paths.table(CUSTOMERS)), version=looked_into)
    sources = sources_reading(paths.root, bronze__orders=(None, 1)).model_copy(
        update={"references": {CUSTOMERS: pinned}}
    )
    winner = load_batch(paths.root, specs[ORDERS], sources=sources)
    report = JobReport(
        job=Job.SILVER_MERGE,
        table=ORDERS,
        run_id=winner.intent.run_id,
        outcome=Outcome.COMMITTED,
        message="",
        interval=day(1),
        version=winner.version,
        rows=RowCounts(read=1, applied=1, inserted=1),
    )
    found = lineage_of_write(ORDERS, report, winner.intent.run_id, Settings(root=paths.root, tables=tmp_path / "specs"))
    versions = {each.name: each.facets["version"].datasetVersion for each in found.inputs}
    assert versions == {str(paths.table(BRONZE_ORDERS)): "1", str(paths.table(CUSTOMERS)): str(looked_into)}
    assert [each.name for each in found.inputs if each.inputFacets] == [str(paths.table(BRONZE_ORDERS))]


def test_a_restricted_column_has_a_tag_in_each_table_that_it_reaches(tmp_path: Path) -> None:
    amount = {"type": "int", "classification": "restricted"}
    bronze = bronze_spec(columns={**bronze_document()["columns"], "amount": amount})
    specs = {spec.table: spec for spec in (bronze, silver_spec())}
    for spec in specs.values():
        [*tags] = table_facets(spec, specs, tmp_path, 1)["tags"].tags  # type: ignore[attr-defined]
        assert {(tag.field, tag.value) for tag in tags} == {(None, "internal"), ("amount", "restricted")}

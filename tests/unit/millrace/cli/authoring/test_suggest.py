"""`lakehouse suggest`: the rules, their evidence, and what is left out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable

from millrace.cli.authoring.suggest import suggested_yaml, suggestions
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.errors import NotReadyError, UnknownNameError
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from millrace.specs.checks.sql import checked_catalog
from tests.support.cli import Lakehouse
from tests.support.documents.specs import bronze_document, silver_document, write_spec, write_specs
from tests.support.reading.certified_lake import HASH, ORDERS, orders, write_version

NOT_NULL, UNIQUE = "expect_column_values_to_not_be_null", "expect_column_values_to_be_unique"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(root=tmp_path / "läke", tables=tmp_path / "tables")


def rows(count: int, *, nulls: int = 0) -> pa.Table:
    """Rows with an id, one of four kinds, an amount from 0, a code of six digits, and a column of Millrace."""
    numbers = range(count)
    return pa.table(
        {
            "order_id": [f"o{number}" for number in numbers],
            "kind": [None if number < nulls else ("été", "b", "c", "it's")[number % 4] for number in numbers],
            "amount": pa.array([number % 144 * 10 for number in numbers], pa.int32()),
            "code": [f"{number % 50:06}" for number in numbers],
            "_batch_seq": [1] * count,
        }
    )


def test_a_misspelt_table_is_told_from_the_specs_before_any_is_written(settings: Settings) -> None:
    write_specs(settings.tables, bronze_document())
    for name in ("bronze.order", "orders"):
        with pytest.raises(UnknownNameError, match=r"there is no table .*\ndid you mean 'bronze\.orders'\?"):
            suggestions(name, settings)
    with pytest.raises(UnknownNameError, match=r"there is no table bronze\.orders in "):
        suggestions("bronze.orders", settings)


def test_each_rule_has_its_evidence(settings: Settings) -> None:
    for _ in range(3):
        write_version(settings.paths, rows(2880))
    version, found = suggestions(ORDERS, settings)
    by_column = {(rule.name, rule.arguments.get("column")): rule for rule in found}
    assert version.version == 2
    assert by_column[NOT_NULL, "kind"].evidence == "never null in 2,880 rows, nor in 2 earlier certified versions"
    assert by_column[UNIQUE, "order_id"].evidence == "2,880 different values in 2,880 rows"
    kind = by_column["expect_column_values_to_be_in_set", "kind"]
    assert (kind.arguments["value_set"], kind.evidence) == (["b", "c", "it's", "été"], "4 values in 2,880 rows")
    amount = by_column["expect_column_values_to_be_between", "amount"]
    assert (amount.arguments["min_value"], amount.arguments["max_value"]) == (0, 1500)
    assert amount.evidence == "from 0 to 1,430 in 2,880 rows"
    code = by_column["expect_column_value_lengths_to_be_between", "code"]
    assert code.evidence == "each of 2,880 values has 6 characters"
    assert (UNIQUE, "code") not in by_column
    assert "_batch_seq" not in {column for _, column in by_column}


def test_no_rule_has_values_of_a_restricted_column(settings: Settings) -> None:
    columns = {name: {"type": kind} for name, kind in {"kind": "string", "amount": "int", "code": "string"}.items()}
    hidden = {name: {**column, "classification": "restricted"} for name, column in columns.items()}
    source = bronze_document(columns={**bronze_document()["columns"], **hidden})
    own = silver_document(columns={**silver_document()["columns"], **columns})
    write_specs(settings.tables, source, own)
    write_version(settings.paths, rows(2880))
    _, found = suggestions(ORDERS, settings)
    assert {(rule.name, rule.arguments["column"]) for rule in found if rule.arguments.get("column")} == {
        (NOT_NULL, name) for name in columns
    }


def test_a_column_that_was_null_in_an_earlier_version_may_be_null_again(settings: Settings) -> None:
    write_version(settings.paths, rows(100, nulls=1))
    write_version(settings.paths, rows(100))
    _, found = suggestions(ORDERS, settings)
    assert {rule.arguments["column"] for rule in found if rule.name == NOT_NULL} == {"order_id", "amount", "code"}


def test_the_band_of_row_counts_contains_those_of_the_certified_versions(settings: Settings) -> None:
    for count in (100, 100, 110, 90, 100, 100, 100, 400, 20, 100):
        version = write_version(settings.paths, orders(*map(str, range(count))), passed=None)
        table_id = str(DeltaTable(str(settings.paths.table(ORDERS))).metadata().id)
        facts = {"in_table": count, "applied": count}
        Gates(settings.paths).record(
            GateResult(table=ORDERS, table_id=table_id, version=version, suite_hash=HASH, passed=True, facts=facts)
        )
    _, (band, *_) = suggestions(ORDERS, settings)
    assert band.name == "expect_table_row_count_to_be_near_median"
    assert band.arguments == {"rows": "applied", "of_last": 7, "min_percent": 16, "max_percent": 500}
    assert band.evidence == "20 to 400 percent of the median of the 7 versions before, in 3 certified versions"


def test_what_the_spec_says_already_is_left_out(settings: Settings) -> None:
    stated = [{"expect_column_values_to_be_between": {"column": "amount", "max_value": 9}, "action": "warn"}]
    write_specs(settings.tables, bronze_document(), silver_document(expectations=stated))
    write_version(settings.paths, rows(100))
    _, found = suggestions(ORDERS, settings)
    names = {(rule.name, rule.arguments.get("column")) for rule in found}
    assert (NOT_NULL, "amount") in names
    left_out = {(NOT_NULL, "order_id"), (UNIQUE, "order_id"), ("expect_column_values_to_be_between", "amount")}
    assert not names & left_out


def test_the_yaml_can_be_pasted_and_lakehouse_check_accepts_it(settings: Settings) -> None:
    words = ["-.5", "1e3", "2013-01-01", "no"]
    write_version(settings.paths, pa.table({"order_id": words * 25, "amount": range(100)}))
    pasted = f"{yaml.safe_dump(silver_document())}{suggested_yaml(*suggestions(ORDERS, settings))}"
    write_specs(settings.tables, bronze_document())
    write_spec(settings.tables, "silver/shop/orders.yaml", pasted)
    rules = checked_catalog(settings.tables).specs[ORDERS].expectations
    assert len(rules) > 3
    assert words in [rule.arguments.get("value_set") for rule in rules]


def test_an_empty_version_and_a_table_without_one(settings: Settings) -> None:
    with pytest.raises(UnknownNameError):
        suggestions(ORDERS, settings)
    write_version(settings.paths, orders(), passed=False)
    with pytest.raises(NotReadyError):
        suggestions(ORDERS, settings)
    write_version(settings.paths, orders())
    version, found = suggestions(ORDERS, settings)
    assert yaml.safe_load(suggested_yaml(version, found)) == {"expectations": []}


def test_the_command_prints_yaml_or_json(lakehouse: Lakehouse, place: Mapping[str, str]) -> None:
    write_version(LakehousePaths(Path(place["LAKEHOUSE_ROOT"])), rows(100))
    printed = yaml.safe_load(lakehouse("suggest", ORDERS).stdout)["expectations"]
    items = json.loads(lakehouse("suggest", ORDERS, "--json").stdout)
    assert [item["rule"] for item in items] == printed
    assert all(item["evidence"] for item in items)

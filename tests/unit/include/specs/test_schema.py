"""The schema for editors accepts the same documents as the catalog."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest

from include.settings import PROJECT
from include.specs.files import read_spec_file
from include.specs.schema import SCHEMA_FILE, table_spec_schema
from tests.support.documents.specs import bronze_document, gold_document, query_document, silver_document

SHIPPED = sorted((PROJECT / "include" / "tables").rglob("*.yaml"))
SILVER_QUERY = query_document("silver.last_orders", keys=["order_id"])
VALIDATOR = jsonschema.Draft202012Validator(table_spec_schema())


def errors_of(document: Any) -> list[str]:
    """Return the places at which the schema refuses the document."""
    return ["/".join(map(str, error.absolute_path)) for error in VALIDATOR.iter_errors(document)]


def test_every_shipped_spec_fits_and_points_its_editor_to_the_schema() -> None:
    VALIDATOR.check_schema(table_spec_schema())
    assert len(SHIPPED) >= 8
    for path in SHIPPED:
        assert errors_of(read_spec_file(path).document) == []
        first = path.read_text().split("\n")[0]
        assert first.startswith("# yaml-language-server: $schema=")
        assert (path.parent / first.partition("=")[2]).resolve() == SCHEMA_FILE


@pytest.mark.parametrize("document", [bronze_document(), silver_document(), SILVER_QUERY, gold_document()])
def test_sound_documents_fit(document: dict[str, Any]) -> None:
    assert errors_of(document) == []


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({}, ""),
        ({"table": "platin.x"}, "table"),
        (silver_document(kees=1), ""),
        (silver_document(domain="shop"), ""),
        (silver_document(keys=[]), "keys"),
        (silver_document(columns={"a": {"type": "integer"}}), "columns/a/type"),
        (silver_document(columns={"A": {}}), "columns"),
        (silver_document(source="silver.x"), "source"),
        ({**SILVER_QUERY, "measures": {"orders": "count(*)"}}, ""),
        ({**SILVER_QUERY, "sources": {"o": {"table": "silver.orders", "where": "amount > 1"}}}, "sources/o"),
        (gold_document(sources={"o": {"tabel": "silver.orders"}}), "sources/o"),
        (bronze_document(source={"landing": "x", "format": "xml"}), "source/format"),
    ],
)
def test_the_schema_refuses_what_the_models_refuse(document: dict[str, Any], place: str) -> None:
    assert place in errors_of(document)


@pytest.mark.parametrize(
    "rule",
    [
        {"expect_column_to_exist": {"column": "a"}},
        {"action": "warn"},
        {"expect_column_to_exist": {"column": "a"}, "action": "drop"},
        {"expect_column_to_exist": {"colum": "a"}, "action": "warn"},
        {"expect_column_to_exist": {}, "action": "warn"},
        {"expect_nothing": {}, "action": "warn"},
        {"expect_column_to_exist": {"column": "a"}, "action": "warn", "reson": "x"},
        {"expect_table_row_count_to_be_between": {}, "action": "warn"},
        {"expect_table_row_count_to_equal": {"value": "3"}, "action": "warn"},
        {
            "expect_column_to_exist": {"column": "a"},
            "expect_column_values_to_be_unique": {"column": "a"},
            "action": "warn",
        },
    ],
)
def test_expectations_that_do_not_fit_are_refused(rule: dict[str, Any]) -> None:
    assert any(place.startswith("expectations/0") for place in errors_of(silver_document(expectations=[rule])))


def test_every_setting_has_a_description() -> None:
    for name, definition in table_spec_schema()["$defs"].items():
        for key, about in definition["properties"].items():
            assert about.get("description") or key.startswith("expect_"), f"{name}.{key}"

"""Odd documents give a finding with its place and never a traceback; the schema for editors refuses the same."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from embedded.clone import DEMO
from millrace.catalog import load_catalog
from millrace.cli.authoring.infer import require_domain_name
from millrace.errors import SpecError
from millrace.paths import SCHEMA_FILE
from millrace.specs.files import read_spec_file
from millrace.specs.schema import table_spec_schema
from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, gold_document, query_document, silver_document, write_specs

UNIQUE, BETWEEN = "expect_column_values_to_be_unique", "expect_column_values_to_be_between"
MATCH, IN_SET = "expect_column_values_to_match_regex", "expect_column_values_to_be_in_set"
FRESH = "expect_table_to_be_fresh"


def bound(**arguments: Any) -> dict[str, Any]:
    return {"expectations": [{BETWEEN: {"column": "amount", **arguments}, "action": "fail"}]}


@pytest.mark.parametrize(
    ("change", "key", "said"),
    [
        ({"expectations": [{UNIQUE: {"column": ["a"]}, "action": "fail"}]}, f"[0].{UNIQUE}.column", "text is needed"),
        ({"expectations": [{UNIQUE: {"column": "amount"}, "action": ["drop"]}]}, "[0].action", "unknown value"),
        ({"maintenance": {"vacuum": {"retain": "0 hours"}}}, "maintenance.vacuum.retain", "a retention of nothing"),
        ({"maintenance": {"vacuum": {"retain": "99999999999 days"}}}, "vacuum.retain", "longer than 100 years"),
        ({"conflicts": {"retry_for": "9999999999999999 hours"}}, "conflicts.retry_for", "longer than 100 years"),
        (bound(min_value=10, max_value=1), f"{BETWEEN}.max_value", "nothing lies between min_value 10 and this"),
        (bound(min_value=1, max_value=1, strict_min=True), f"{BETWEEN}.max_value", "nothing lies between"),
        ({"columns": {"order_id": {"type": "decimal(99,98)"}}, "expectations": []}, "order_id.type", "1 to 38 digits"),
        ({"columns": {"order_id": {"type": "decimal(4,5)"}}, "expectations": []}, "order_id.type", "no more after"),
        ({"expectations": [{MATCH: {"column": "order_id", "regex": "a(["}, "action": "fail"}]}, f"{MATCH}.regex",
         "not a regular expression: unterminated character set"),
        ({"expectations": [{FRESH: {"column": "event_at", "max_age": "99999999999 days"}, "action": "fail"}]},
         "max_age", "longer than 100 years"),
        ({"owner": "shop\0"}, "owner", "a control character"),
    ],
)  # fmt: skip
def test_a_wrong_value_of_a_silver_table_is_named(tmp_path: Path, change: dict[str, Any], key: str, said: str) -> None:
    document = silver_document(**{**change, "columns": {**silver_document()["columns"], **change.get("columns", {})}})
    found = only_problem(write_specs(tmp_path, bronze_document(), document))
    assert key in found.key
    assert said in str(found)


@pytest.mark.parametrize(
    ("source", "key", "said"),
    [
        ({"path": "{interval_start:..}/{interval_start:..}/etc"}, "path", "must lie below the landing root"),
        ({"path": "{interval_start.__class__}"}, "path", "unknown field 'interval_start.__class__'"),
        ({"path": "{interval_start.year:99999999999}"}, "path", "unknown form"),
        ({"path": "{interval_start!r}"}, "path", "unknown form"),
        ({"path": "{interval_start"}, "path", "not a Python format"),
        ({"landing": "../other"}, "landing", "must lie below the landing root"),
        ({"landing": "a\0b"}, "landing", r"a file name cannot contain the character '\x00'"),
        ({"kafka": "main", "topic_pattern": "a("}, "topic_pattern", "not a regular expression"),
    ],
)
def test_a_wrong_folder_or_pattern_is_named(tmp_path: Path, source: dict[str, Any], key: str, said: str) -> None:
    whole = {**({} if "kafka" in source else {"landing": "orders"}), "format": "json", **source}
    found = only_problem(write_specs(tmp_path, bronze_document(source=whole)))
    assert found.key == f"source.{key}"
    assert said in str(found)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("1: a\n", 4, "1: a key is text, and this is not (got '1'); write it in quotes: \"1\""),
        ("columns:\n  null: {type: int}\n", 5, "columns.null: a key is text"),
        ("? [a]\n: b\n", 4, "a key is text"),
        ("columns: &a\n  x: {y: *a}\n", 4, "columns.x.y: the value contains itself through an alias"),
        ("columns: &a [*a]\n", 4, "the value contains itself through an alias"),
        ("keys: " + "[" * 60_000 + "]" * 60_000 + "\n", 4, "deeper or larger than any spec"),
        ("max_rows_per_batch: " + "9" * 5000 + "\n", 4, "is no int"),
        ("keys: !!bool x\n", 4, "'x' is no bool"),
        ("keys: !!timestamp x\n", 4, "could not determine a constructor"),
        ("keys: !!python/object/apply:os.system [ls]\n", 4, "could not determine a constructor"),
        ("<<: 5\n", 4, "expected a mapping"),
        ("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
            f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in ["ab", "bc", "cd", "de", "ef", "fg", "gh"]
        ), 4, "deeper or larger than any spec"),
    ],
)  # fmt: skip
def test_yaml_that_is_no_document_is_named_with_its_line(tmp_path: Path, text: str, line: int, said: str) -> None:
    file = tmp_path / "silver" / "shop" / "odd.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(f"# a spec\n\ntable: silver.odd\n{text}")
    found = [one for one in problems_of(tmp_path) if said in str(one)]
    assert len(found) == 1, problems_of(tmp_path)
    assert abs(found[0].line - line) <= (7 if "larger" in said else 1)


def deep(opening: str, inside: str, closing: str) -> str:
    return opening * 30_000 + inside + closing * 30_000


AVRO = {"kafka": "main", "topics": ["t"], "format": "avro"}


TYPES = bronze_document("bronze.deep", columns={"a": {"type": deep("array<", "int", ">")}})
SQL = query_document("silver.deep", query="SELECT " + deep("(", "1", ")"))
SCHEMA = bronze_document("bronze.deep", source={**AVRO, "avro_schema": deep("[", "", "]")})


@pytest.mark.parametrize(
    ("key", "document"),
    [("columns", TYPES), ("query", SQL), ("source.avro_schema", SCHEMA)],
    ids=["type", "SQL", "JSON"],
)
def test_a_value_that_is_too_deep_to_be_parsed_stops_only_its_table(
    tmp_path: Path, key: str, document: dict[str, Any]
) -> None:
    found = only_problem(write_specs(tmp_path, bronze_document(), document))
    assert (found.key, "too deep" in str(found) or "deeper" in str(found)) == (key, True)
    assert list(load_catalog(tmp_path).specs) == ["bronze.orders"]


def test_a_spec_that_is_a_pipe_or_a_link_to_another_file_stops_only_its_table_and_shows_nothing(tmp_path: Path) -> None:
    tables = write_specs(tmp_path / "tables", bronze_document())
    (secrets := tmp_path / "passwords.json").write_text('{"admin": "hunter2"}')
    folder = next(tables.rglob("orders.yaml")).parent
    (folder / "linked.yaml").symlink_to(secrets)
    os.mkfifo(folder / "pipe.yaml")
    (folder / "..data").mkdir()
    (folder / "orders.yaml").rename(folder / "..data" / "orders.yaml")
    (folder / "orders.yaml").symlink_to("..data/orders.yaml")  # as Kubernetes mounts files
    catalog = load_catalog(tables)
    assert set(catalog.specs) == {"bronze.orders"}
    found = {table: str(invalid.problems[0]) for table, invalid in catalog.invalid.items()}
    assert "a link to a file outside of its folder" in found["bronze.linked"]
    assert "no file of at most" in found["bronze.pipe"]
    assert "hunter2" not in str(found)


def test_a_folder_without_a_valid_name_is_no_domain(tmp_path: Path) -> None:
    found = only_problem(write_specs(tmp_path, bronze_document(), domain="My Domain!"))
    assert "the folder 'My Domain!' is not a valid name of a domain" in str(found)
    with pytest.raises(SpecError, match=r"'\.\./\.\.' is not a valid name of a domain"):
        require_domain_name("../..")
    assert not list(tmp_path.rglob("orders.yaml")) or found.file.parent.name == "My Domain!"


def test_a_rule_with_several_errors_has_a_finding_for_each(tmp_path: Path) -> None:
    rule = {IN_SET: {"column": ["a"], "value_set": [], "nosuch": 1}, "action": ["drop"], "warn": [1]}
    found = problems_of(write_specs(tmp_path, bronze_document(), silver_document(expectations=[rule])))
    assert len({one.key for one in found}) == len(found) == 5, found


SHIPPED = sorted((DEMO / "tables").rglob("*.yaml"))
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
        assert (path.parent / first.partition("=")[2]).resolve() == DEMO / SCHEMA_FILE


@pytest.mark.parametrize("document", [bronze_document(), silver_document(), SILVER_QUERY, gold_document()])
def test_sound_documents_fit(document: dict[str, Any]) -> None:
    assert errors_of(document) == []


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({}, ""),
        ({"table": "platin.x"}, "table"),
        (silver_document(domain="shop"), ""),
        (silver_document(columns={"a": {"type": "integer"}}), "columns/a/type"),
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
        {"expect_column_to_exist": {"column": "a"}, "action": "drop"},
        {"expect_column_to_exist": {"colum": "a"}, "action": "warn"},
        {"expect_nothing": {}, "action": "warn"},
        {"expect_column_to_exist": {"column": "a"}, "action": "warn", "reson": "x"},
        {"expect_table_row_count_to_be_between": {}, "action": "warn"},
        {"expect_table_row_count_to_equal": {"value": "3"}, "action": "warn"},
        {"expect_column_to_exist": {"column": "a"}, "expect_table_columns_to_be_stable": {}, "action": "warn"},
    ],
)
def test_expectations_that_do_not_fit_are_refused(rule: dict[str, Any]) -> None:
    assert any(place.startswith("expectations/0") for place in errors_of(silver_document(expectations=[rule])))


def test_every_setting_has_a_description() -> None:
    for name, definition in table_spec_schema()["$defs"].items():
        for key, about in definition["properties"].items():
            assert about.get("description") or key.startswith("expect_"), f"{name}.{key}"

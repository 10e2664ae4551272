"""Specs as models: layers, defaults, digests."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from include.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec, parse_spec
from tests.support.documents.specs import bronze_document, gold_document, gold_spec, silver_document, silver_spec


def test_the_layer_of_the_table_decides_the_model() -> None:
    documents = (bronze_document(), silver_document(), gold_document())
    assert [type(parse_spec(document)) for document in documents] == [BronzeSpec, SilverSpec, GoldSpec]


def test_a_table_of_no_layer_is_refused() -> None:
    with pytest.raises(ValueError, match=r"bronze.<name>, silver.<name> or gold.<name>, got 'platinum.x'"):
        parse_spec({"table": "platinum.x"})


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        silver_spec().table = "silver.other"  # type: ignore[misc]


def test_sources_are_named_in_the_order_of_the_spec() -> None:
    sources = {
        "o": {"table": "silver.orders"},
        "c": {"table": "silver.customers", "join": "left", "on": "o.id = c.id"},
    }
    spec = gold_spec(sources=sources, refresh_from={"o": "day", "c": "day"})
    assert spec.source_tables == ("silver.orders", "silver.customers")
    assert silver_spec().source_tables == ("bronze.orders",)


@pytest.mark.parametrize("kind", ["int", "timestamp", "decimal(18,2)"])
def test_known_column_types_are_accepted(kind: str) -> None:
    assert silver_spec(columns={"order_id": {"type": kind}}).columns["order_id"].type == kind


@pytest.mark.parametrize("kind", ["integer", "decimal", "INT"])
def test_other_column_types_are_refused(kind: str) -> None:
    with pytest.raises(ValidationError, match="unknown column type"):
        silver_spec(columns={"order_id": {"type": kind}})


def test_descriptions_do_not_change_the_spec_hash() -> None:
    plain = silver_spec()
    described = silver_spec(description="words", owner="team", maintenance={"optimize": "off"})
    assert described.spec_hash == plain.spec_hash
    assert silver_spec(apply_as_deletes="amount < 0").spec_hash != plain.spec_hash


def test_how_long_a_run_waits_for_files_decides_no_row_and_it_rests_between_two_looks() -> None:
    source = bronze_document()["source"]
    patient = bronze_document(source={**source, "wait": {"timeout": "3 hours"}})
    assert parse_spec(patient).spec_hash == parse_spec(bronze_document()).spec_hash
    restless = bronze_document(source={**source, "wait": {"poke_interval": "0 seconds"}})
    with pytest.raises(ValidationError, match="a poke_interval of nothing would never rest"):
        parse_spec(restless)


def test_the_suite_hash_follows_the_table_rules_alone() -> None:
    rule = {"expect_column_values_to_not_be_null": {"column": "amount"}}
    row_rule, table_rule = {**rule, "action": "drop"}, {**rule, "action": "fail"}
    assert silver_spec(expectations=[row_rule]).suite_hash == silver_spec().suite_hash
    assert silver_spec(expectations=[table_rule]).suite_hash != silver_spec().suite_hash


def test_the_action_separates_row_rules_from_table_rules() -> None:
    rule = {"expect_column_values_to_not_be_null": {"column": "amount"}}
    actions = ("quarantine", "warn", "drop", "fail")
    spec = silver_spec(expectations=[{**rule, "action": action} for action in actions])
    assert [one.action.value for one in spec.row_rules] == ["quarantine", "drop"]
    assert [one.action.value for one in spec.table_rules] == ["warn", "fail"]


def test_property_values_become_text_as_delta_writes_them() -> None:
    spec = silver_spec(delta={"delta.enableRowTracking": True, "delta.checkpointInterval": 50})
    assert spec.delta == {"delta.enableRowTracking": "true", "delta.checkpointInterval": "50"}

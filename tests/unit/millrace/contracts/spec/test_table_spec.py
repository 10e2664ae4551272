"""Specs as models: layers, defaults, digests."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from millrace.contracts.spec.table_spec import BronzeSpec, GoldSpec, SilverSpec, parse_spec
from tests.support.documents.specs import bronze_document, gold_document, silver_document, silver_spec


def test_the_layer_of_the_table_decides_the_model() -> None:
    documents = (bronze_document(), silver_document(), gold_document())
    assert [type(parse_spec(document)) for document in documents] == [BronzeSpec, SilverSpec, GoldSpec]
    with pytest.raises(ValueError, match=r"bronze.<name>, silver.<name> or gold.<name>, got 'platinum.x'"):
        parse_spec({"table": "platinum.x"})
    with pytest.raises(ValidationError, match="frozen"):
        silver_spec().table = "silver.other"  # type: ignore[misc]


def test_a_column_has_a_type_of_spark_in_its_own_words() -> None:
    for kind in ("int", "timestamp", "decimal(18,2)"):
        assert silver_spec(columns={"order_id": {"type": kind}}).columns["order_id"].type == kind
    for kind in ("integer", "decimal", "INT"):
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
    both = silver_spec(expectations=[{**rule, "action": action} for action in ("quarantine", "warn", "drop", "fail")])
    assert [each.action.value for each in both.row_rules] == ["quarantine", "drop"]
    assert [each.action.value for each in both.table_rules] == ["warn", "fail"]


def test_property_values_become_text_as_delta_writes_them() -> None:
    spec = silver_spec(delta={"delta.enableRowTracking": True, "delta.checkpointInterval": 50})
    assert spec.delta == {"delta.enableRowTracking": "true", "delta.checkpointInterval": "50"}

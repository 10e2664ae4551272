"""Keys, values, columns, sources and properties of a spec that are wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from millrace.contracts.spec.table_spec import BronzeSpec
from tests.support.documents.refusals import assert_problem, only_problem, problem_of_silver, problems_of
from tests.support.documents.specs import (
    Document,
    bronze_document,
    bronze_spec,
    gold_spec,
    silver_document,
    write_specs,
)

HISTORY = {"stored_as_scd_type": 2, "track_history_column_list": ["amount"]}
FEED, RETENTION = "delta.enableChangeDataFeed", "delta.deletedFileRetentionDuration"
LOG = "delta.logRetentionDuration"


def with_order_id(column: object) -> dict[str, Any]:
    """The columns of the silver table, of which the key is stated otherwise."""
    return {"columns": {**silver_document()["columns"], "order_id": column}}


LIKE_NAMES = """{"type": "record", "name": "order", "fields": [{"name": "parcel", "type": ["null", {"type": "record",
    "name": "parcel", "fields": [{"name": "size", "type": "int"}, {"name": "Size", "type": "int"}]}]}]}"""


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"kees": ["order_id"]}, "kees", "unknown key", "did you mean 'keys'?"),
        ({"maintenance": {"vacum": {}}}, "maintenance.vacum", "unknown key", "did you mean 'vacuum'?"),
        ({"maintenance": {"target_file_size": "9 bytes"}}, "maintenance.target_file_size", "a size", "write a number"),
        ({"stored_as_scd_type": 3}, "stored_as_scd_type", "unknown value", "known are 1, 2"),
        ({"sequence_by": "event_at"}, "sequence_by", "a list is needed here", "write it as a list: [event_at]"),
        ({"keys": []}, "keys", "at least one is needed", ""),
        ({"keys": ["order"]}, "keys[0]", "the table has no such column", "did you mean 'order_id'?"),
        ({"sequence_by": ["event_seqq"]}, "sequence_by[0]", "the table has no such column", "did you mean 'event_seq"),
        ({"zorder_by": ["day", "x"]}, "zorder_by[1]", "the table has no such column", "known are order_id, amount"),
        ({"source": "bronze.order"}, "source", "no spec creates this table", "did you mean 'bronze.orders'?"),
        ({"source": "bronze-orders"}, "source", "a bronze table is written bronze.<name>", ""),
        ({"owner": 7}, "owner", "text is needed here", 'write it in quotes: "7"'),
        ({"maintenance": {"optimize": "of"}}, "maintenance.optimize", "unknown value", "did you mean 'off'?"),
        ({"maintenance": {"vacuum": {"retain": "1 week"}}}, "maintenance.vacuum.retain", "not a retention", ""),
        ({"maintenance": {"change_data_feed": "perhaps"}}, "maintenance.change_data_feed", "true or false", ""),
        ({"maintenance": "off"}, "maintenance", "a mapping is needed here", ""),
        ({"snapshot": "full", "sequence_by": [], "apply_as_deletes": "x"}, "apply_as_deletes", "full snapshot", ""),
        ({"snapshot": "full"}, "sequence_by", "full snapshot", "leave out sequence_by, or snapshot"),
        ({"track_history_column_list": ["amount"]}, "track_history_column_list", "only a table with history",
         "add `stored_as_scd_type: 2`"),
        ({**HISTORY, "track_history_except_column_list": ["day"]}, "track_history_except_column_list", "stated twice",
         "leave out one"),
        ({**HISTORY, "except_column_list": ["amount"]}, "track_history_column_list[0]", "the table has no such column",
         "known are order_id"),
        ({**HISTORY, "apply_as_truncates": "x"}, "apply_as_truncates", "this one has stored_as_scd_type: 2", ""),
        ({"ignore_null_updates": True, "apply_as_truncates": "x"}, "apply_as_truncates", "ignore_null_updates", ""),
        ({"except_column_list": ["order_id"]}, "except_column_list[0]", "a key identifies", "leave it out"),
        (with_order_id({"type": "integer"}), "columns.order_id.type", "", "did you mean 'int'?"),
        (with_order_id({"type": "decimal(10"}), "columns.order_id.type", "", "write it in quotes, since a comma"),
        (with_order_id("string"), "columns.order_id", "a mapping is needed", "write it as a mapping: {type: string}"),
        (with_order_id({"format": "DD.MM.yyyy"}), "columns.order_id.format", "D, the day of the year", ""),
        (with_order_id({"nulable": False}), "columns.order_id.nulable", "", "did you mean 'nullable'?"),
        (with_order_id({"fromm": "x"}), "columns.order_id.fromm", "", "did you mean 'from'?"),
        ({"delta": {FEED: "true"}}, f"delta['{FEED}']", "", "write `maintenance: {change_data_feed"),
        ({"delta": {RETENTION: "interval 1 day"}}, f"delta['{RETENTION}']", "", "write `maintenance: {vacuum"),
        ({"delta": {RETENTION.lower(): "x"}}, f"delta['{RETENTION.lower()}']", "", "write `maintenance: {vacuum"),
        ({"delta": {"millrace.table_id": 3}}, "delta['millrace.table_id']", "", "leave it out"),
        ({"delta": {LOG: "interval 1 days"}}, f"delta['{LOG}']", "than the files, 30 days", "write interval 30 days"),
        ({"delta": {LOG.upper(): "interval 59 days"}, "maintenance": {"vacuum": {"retain": "60 days"}}},
         f"delta['{LOG.upper()}']", "than the files, 60 days", "write interval 60 days"),
        ({"delta": {LOG: f"interval {10**12} days"}}, f"delta['{LOG}']", "this is no number of", ""),
        ({"delta": {LOG: "1 month"}}, f"delta['{LOG}']", "weeks, days or hours", "write interval 30 days"),
    ],
)  # fmt: skip
def test_each_is_named_with_its_likely_fix(tmp_path: Path, changes: Document, key: str, message: str, fix: str) -> None:
    assert_problem(problem_of_silver(tmp_path, **changes), key, message, fix)


@pytest.mark.parametrize("key", ["keys", "source", "table"])
def test_a_misspelt_key_is_one_problem_and_not_also_a_missing_one(tmp_path: Path, key: str) -> None:
    document = silver_document()
    write_specs(tmp_path, bronze_document(), document)
    document[f"{key}z"] = document.pop(key)
    (tmp_path / "silver/shop/orders.yaml").write_text(yaml.safe_dump(document))
    assert_problem(only_problem(tmp_path), f"{key}z", "unknown key", f"did you mean '{key}'?")


def test_a_key_that_is_missing_is_reported_without_a_value(tmp_path: Path) -> None:
    document = silver_document()
    del document["source"]
    problem = only_problem(write_specs(tmp_path, bronze_document(), document))
    assert (problem.key, problem.value) == ("source", None)
    assert problem.message == "the key is missing; or write sources, a list, for several tables"


def test_a_silver_column_that_its_source_does_not_have(tmp_path: Path) -> None:
    odd = {**silver_document()["columns"], "Order-Day": {"from": "day"}}
    assert problem_of_silver(tmp_path, columns=odd).key == "columns.Order-Day", "a name that readers would quote"
    columns = {**silver_document()["columns"], "amont": {"type": "int"}}
    problem = problem_of_silver(tmp_path, columns=columns)
    assert (problem.key, problem.message) == ("columns.amont", "bronze.orders has no column of this name")
    assert problem.fix.startswith("did you mean 'amount'?")


@pytest.mark.parametrize(
    "delta",
    [
        {"delta.enableDeletionVectors": True},
        {"delta.columnMapping.mode": "name"},
        {"delta.checkpointPolicy": "v2"},
        {"delta.enableTypeWidening": "true"},
        {"delta.feature.v2Checkpoint": "supported"},
        {"delta.feature.timestampNtz": "enabled"},
        {"delta.feature.icebergCompatV2": "supported"},
        {"delta.feature.coordinatedCommits-preview": "supported"},
        {"delta.feature.ofTheNextDelta": "supported"},
        {"delta.enableVariantShredding": True},
        {"delta.enableIcebergCompatV3": True},
        {"delta.minReaderVersion": 3},
        {"delta.universalFormat.enabledFormats": "iceberg"},
    ],
    ids=lambda delta: next(iter(delta)),
)
def test_a_property_that_raises_the_reader_version(tmp_path: Path, delta: dict[str, Any]) -> None:
    problem = problem_of_silver(tmp_path, delta=delta)
    assert problem.key == f"delta['{next(iter(delta))}']"
    assert problem.message.startswith("this raises the table's reader version")


@pytest.mark.parametrize(
    "delta",
    [
        {"delta.enableDeletionVectors": "false"},
        {"delta.columnMapping.mode": "none"},
        {"delta.minReaderVersion": 1},
        {"delta.enableRowTracking": True},
        {"delta.feature.rowtracking": "supported"},
        {"delta.logRetentionDuration": "interval 60 days"},
    ],
    ids=lambda delta: next(iter(delta)),
)
def test_a_property_that_leaves_the_reader_version_alone(tmp_path: Path, delta: dict[str, Any]) -> None:
    write_specs(tmp_path, bronze_document(), silver_document(delta=delta))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize("name", ["delta.enableRowTracking", "delta.feature.inCommitTimestamp"])
def test_a_feature_that_delta_rs_does_not_write_excludes_restores(tmp_path: Path, name: str) -> None:
    delta = {name: "true" if name == "delta.enableRowTracking" else "supported"}
    problem = problem_of_silver(tmp_path, delta=delta, on_refusal="restore")
    assert problem.message.startswith("on_refusal: restore cannot write a table with the feature ")
    delta = {"delta.feature.checkConstraints": "supported", "delta.enableRowTracking": "false"}
    write_specs(tmp_path, bronze_document(), silver_document(delta=delta, on_refusal="restore"))
    assert problems_of(tmp_path) == ()


@pytest.mark.parametrize("document", [bronze_document, silver_document])
def test_columns_with_statistics_are_named(tmp_path: Path, document: Callable[..., dict[str, Any]]) -> None:
    others = [] if document is bronze_document else [bronze_document()]
    write_specs(tmp_path, *others, document(delta={"delta.dataSkippingNumIndexedCols": "8"}))
    problem = only_problem(tmp_path)
    assert (problem.key, problem.value) == ("delta['delta.dataSkippingNumIndexedCols']", "8")
    assert problem.fix.startswith("name the columns: delta.dataSkippingStatsColumns")
    write_specs(tmp_path, *others, document(delta={"delta.dataSkippingStatsColumns": "`order_id`, _batch_seq"}))
    assert problems_of(tmp_path) == ()
    write_specs(tmp_path, *others, document(delta={"delta.dataSkippingStatsColumns": "day,oder_id"}))
    assert only_problem(tmp_path).fix == "did you mean 'order_id'?"


KAFKA = {"kafka": "main", "topics": ["orders"], "format": "json"}
FILES = {"landing": "orders", "format": "json"}


def test_a_source_that_names_a_cluster_reads_kafka() -> None:
    spec = bronze_spec(source=KAFKA)
    assert spec.reads_kafka
    assert spec.kafka_source.label == "Kafka main: orders"
    with pytest.raises(TypeError, match="loads no landing files"):
        _ = spec.landing_source
    assert BronzeSpec.model_validate(spec.model_dump(by_alias=True)) == spec


def test_a_classification_does_not_change_the_spec_hash() -> None:
    amount = {"type": "int", "classification": "restricted"}
    classified = bronze_spec(columns={**bronze_document()["columns"], "amount": amount})
    assert classified.columns["amount"].classification == "restricted"
    assert classified.spec_hash == bronze_spec().spec_hash
    assert gold_spec(classifications={"orders": "internal"}).spec_hash == gold_spec().spec_hash


def test_the_size_of_batches_does_not_change_the_spec_hash() -> None:
    one, other = (bronze_spec(source={**KAFKA, "max_messages_per_batch": number}) for number in (1, 2))
    assert one.spec_hash == other.spec_hash != bronze_spec(source={**KAFKA, "topics": ["others"]}).spec_hash


@pytest.mark.parametrize(
    ("source", "key", "message", "fix"),
    [
        ({**FILES, "format": "jsn"}, "source.format", "", "did you mean 'json'?"),
        ({**FILES, "path": "{start:%Y}"}, "source.path", "", "write it like date={interval_start:%Y-%m-%d}"),
        ({**FILES, "path": "../other"}, "source.path", "", "write it as a relative path"),
        ({**FILES, "landing": "hdfs://lake/orders"}, "source.landing", "", "write landing: s3://bucket/prefix"),
        ({**FILES, "delimiter": ""}, "source.delimiter", "", ""),
        ({**FILES, "encoding": "UTF-16"}, "source", "only CSV files have encoding", ""),
        ({**FILES, "format": "csv", "encoding": "UTF-16", "multi_line": False}, "source", "files are read whole", ""),
        ({**KAFKA, "topcis": ["orders"]}, "source.topcis", "unknown key", "did you mean 'topics'?"),
        ({**KAFKA, "topic_pattern": "orders-.*"}, "source", "either topics", ""),
        ({**KAFKA, "topics": []}, "source", "either topics", ""),
        ({**KAFKA, "format": "avro"}, "source", "avro_schema go together", ""),
        ({**KAFKA, "format": "avro", "avro_schema": "{"}, "source.avro_schema", "an Avro schema is JSON", ""),
        ({**KAFKA, "format": "avro", "avro_schema": LIKE_NAMES}, "source.avro_schema", "size and Size differ only", ""),
        ({**KAFKA, "format": "avro", "avro_schema": '"int"'}, "source.avro_schema", "must be a record", ""),
        ({**KAFKA, "starting_offsets": "yesterday"}, "source.starting_offsets", "write earliest, latest, or an", ""),
        ({**KAFKA, "starting_offsets": "2013-01-01"}, "source.starting_offsets", "an instant with its zone", ""),
        ({**KAFKA, "transforms": {"ordr_id": "key"}}, "source.transforms.ordr_id", "no such", "did you mean 'order_i"),
        ({**KAFKA, "allowed_latency": "10"}, "source.allowed_latency", "is not a wait", ""),
    ],
)
def test_each_mistake_in_a_source_is_named_with_its_likely_fix(
    tmp_path: Path, source: Document, key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(source=source)))
    assert problem.line > 1
    assert_problem(problem, key, message, fix)


def test_raw_bytes_fill_only_the_column_value(tmp_path: Path) -> None:
    raw = {**KAFKA, "format": "raw"}
    sized = {"value": {"type": "binary"}, "size": {"type": "int"}}
    fine = bronze_document(source={**raw, "transforms": {"size": "length(value)"}}, columns=sized)
    assert problems_of(write_specs(tmp_path, fine)) == ()
    problem = only_problem(write_specs(tmp_path, bronze_document(source=raw, columns=sized)))
    assert (problem.key, problem.message) == ("columns.size", "raw bytes have no fields")


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"snapshot": "full", "sequence_by": []}, "snapshot", "its intervals do not delimit snapshots", "path"),
        ({"sequence_by": []}, "source", "its intervals do not order its rows", "sequence_by"),
    ],
)
def test_silver_cannot_be_ordered_by_interval_if_its_source_has_one_folder(
    tmp_path: Path, changes: Document, key: str, message: str, fix: str
) -> None:
    by_interval, in_one_folder = (
        bronze_document(source={**bronze_document()["source"], **path}) for path in ({}, {"path": "."})
    )
    assert problems_of(write_specs(tmp_path, by_interval, silver_document(**changes))) == ()
    problem = only_problem(write_specs(tmp_path, in_one_folder, silver_document(**changes)))
    assert (problem.file.name, problem.key) == ("orders.yaml", key)
    assert message in problem.message
    assert fix in problem.fix

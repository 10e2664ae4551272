"""Sources of bronze tables: each error is reported with its place and its likely fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from include.contracts.spec.table_spec import BronzeSpec
from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, bronze_spec, write_specs

SOURCE = {"kafka": "main", "topics": ["orders"], "format": "json"}
RAW = {"value": {"type": "binary"}}


def test_a_source_that_names_a_cluster_reads_kafka() -> None:
    spec = bronze_spec(source=SOURCE)
    assert spec.reads_kafka
    assert spec.kafka_source.label == "Kafka main: orders"
    with pytest.raises(TypeError, match="loads no landing files"):
        _ = spec.landing_source
    assert BronzeSpec.model_validate(spec.model_dump(by_alias=True)) == spec


def test_the_size_of_batches_does_not_change_the_spec_hash() -> None:
    one, other = (bronze_spec(source={**SOURCE, "max_messages_per_batch": number}) for number in (1, 2))
    assert one.spec_hash == other.spec_hash != bronze_spec(source={**SOURCE, "topics": ["others"]}).spec_hash


@pytest.mark.parametrize(
    ("changes", "key", "message", "fix"),
    [
        ({"topcis": ["orders"]}, "source.topcis", "unknown key", "did you mean 'topics'?"),
        ({"format": "jsn"}, "source.format", "unknown value", "did you mean 'json'?"),
        ({"topic_pattern": "orders-.*"}, "source", "either topics", ""),
        ({"topics": []}, "source", "either topics", ""),
        ({"format": "avro"}, "source", "avro_schema go together", ""),
        ({"format": "avro", "avro_schema": "{"}, "source.avro_schema", "an Avro schema is JSON", ""),
        ({"format": "avro", "avro_schema": '"int"'}, "source.avro_schema", "must be a record", ""),
        ({"starting_offsets": "yesterday"}, "source.starting_offsets", "write earliest, latest, or an instant", ""),
        ({"starting_offsets": "2013-01-01"}, "source.starting_offsets", "an instant with its zone", ""),
        ({"transforms": {"ordr_id": "key"}}, "source.transforms.ordr_id", "no such column", "did you mean 'order_id'?"),
        ({"allowed_latency": "10"}, "source.allowed_latency", "is not a wait", ""),
    ],
)
def test_each_mistake_is_named_with_its_likely_fix(
    tmp_path: Path, changes: dict[str, Any], key: str, message: str, fix: str
) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(source={**SOURCE, **changes})))
    assert (problem.key, problem.line > 1) == (key, True)
    assert message in problem.message
    assert problem.fix.startswith(fix)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"format": "json", "encoding": "UTF-16"}, "only CSV files have encoding"),
        ({"format": "csv", "encoding": "UTF-16", "multi_line": False}, "UTF-16 files are read whole"),
    ],
)
def test_only_csv_is_written_in_many_ways(tmp_path: Path, source: dict[str, Any], message: str) -> None:
    problem = only_problem(write_specs(tmp_path, bronze_document(source={"landing": "orders", **source})))
    assert (problem.key, message in problem.message) == ("source", True)


def test_raw_bytes_fill_only_the_column_value(tmp_path: Path) -> None:
    raw = {**SOURCE, "format": "raw"}
    sized = {**RAW, "size": {"type": "int"}}
    fine = bronze_document(source={**raw, "transforms": {"size": "length(value)"}}, columns=sized)
    assert problems_of(write_specs(tmp_path, fine)) == ()
    problem = only_problem(write_specs(tmp_path, bronze_document(source=raw, columns=sized)))
    assert (problem.key, problem.message) == ("columns.size", "raw bytes have no fields")

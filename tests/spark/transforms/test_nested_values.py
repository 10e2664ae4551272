"""Values of nested types: what is read from JSON agrees with Python's own reader, and a misfit is kept whole."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from include.contracts.spec.nested_type import MAX_DEPTH, nested_type
from spark_jobs.transforms.nested_values import OF_ANOTHER_TYPE, WHOLE
from spark_jobs.transforms.record_parts import RecordColumns
from spark_jobs.transforms.records import CORRUPT, PARSE_JSON, RECORD, RESCUED
from tests.support.documents.nested_values import expected, values_like

KINDS = {
    "tags": "array<string>",
    "address": "struct<city:string,zip:int,order:array<int>>",
    "counts": "map<string,int>",
    "deep": "array<struct<id:int,more:map<string,array<struct<x:int>>>>>",
}


def parse(spark: SparkSession, kinds: dict[str, str], *records: dict[str, Any] | str) -> list[Row]:
    lines = [(record if isinstance(record, str) else json.dumps(record),) for record in records]
    frame = spark.createDataFrame(lines, f"{RECORD} string").coalesce(1)
    return PARSE_JSON["exact"](frame, RecordColumns(kinds, {name: name for name in kinds})).collect()


@given(
    records=st.lists(
        st.fixed_dictionaries({}, optional={name: values_like(kind) for name, kind in KINDS.items()}),
        min_size=10, max_size=40,
    )
)  # fmt: skip
@settings(max_examples=8, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
def test_nested_values_are_those_that_python_reads(spark: SparkSession, records: list[dict[str, Any]]) -> None:
    for record, row in zip(records, parse(spark, KINDS, *records), strict=True):
        read, rescued = row.asDict(recursive=True), json.loads(row[RESCUED] or "{}")
        assert row[CORRUPT] is None
        for name, kind in KINDS.items():
            value, misfit = expected(record.get(name), kind)
            assert read[name] == (None if misfit == OF_ANOTHER_TYPE else value), record
            assert (name in rescued) is (misfit != WHOLE), record
            if misfit:
                kept = rescued[name]
                assert kept == record[name] if isinstance(record[name], str) else json.loads(kept) == record[name]


def test_parts_have_the_types_of_columns(spark: SparkSession) -> None:
    kinds = {
        "a": "struct<price:decimal(38,9),at:timestamp,ok:boolean,by:struct<name:string>>",
        "b": "array<decimal(9,2)>",
    }
    price = "12345678901234567890.123456789"
    a = f'{{"price": {price}, "at": "2013-01-01T08:00:00.123456Z", "ok": "true", "by": null}}'
    whole = f'{{"a": {a}, "b": [1.10, "2"]}}'
    odd = '{"a": {"at": "2013-02-31"}, "b": [1.10, "x"]}'
    first, second, third = parse(spark, kinds, whole, odd, {"a": {}, "b": []})
    moment = datetime.fromisoformat("2013-01-01T08:00:00.123456")
    assert first["a"].asDict() == {"price": Decimal(price), "at": moment, "ok": True, "by": None}
    assert (first["b"], first[RESCUED]) == ([Decimal("1.10"), Decimal("2.00")], None)
    assert (second["a"], second["b"]) == (None, None)
    assert json.loads(second[RESCUED]).keys() == {"a", "b"}
    assert (third["a"].asDict(), third["b"], third[RESCUED]) == (dict.fromkeys(("price", "at", "ok", "by")), [], None)


@pytest.mark.parametrize("shape", ["struct<x:{}>", "array<{}>", "map<string,{}>"])
def test_a_value_of_the_deepest_type_is_read(spark: SparkSession, shape: str) -> None:
    kind, value = "decimal(9,2)", Decimal("7.25")
    for _ in range(MAX_DEPTH):
        kind, value = shape.format(kind), [value] if "array" in shape else {"x": value}  # type: ignore[assignment]
    assert str(nested_type(kind)) == kind
    [row] = parse(spark, {"deep": kind}, json.dumps({"deep": value}, default=float))
    assert (row.asDict(recursive=True)["deep"], row[RESCUED]) == (value, None)

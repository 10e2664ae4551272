"""The names of datasets, by OpenLineage's naming specification, and the types of their columns."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from include.settings import Settings
from lakehouse_airflow.lineage.datasets import name_of, names_of_source, schema_fields
from tests.support.documents.specs import bronze_spec, gold_spec

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

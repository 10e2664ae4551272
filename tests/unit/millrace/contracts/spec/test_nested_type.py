"""Nested types of columns: they are written as Spark writes them, or refused with the reason."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from tests.support.documents.specs import bronze_spec


@pytest.mark.parametrize(
    ("stated", "kept"),
    [
        ("struct<city: STRING, zip: int>", "struct<city:string,zip:int>"),
        ("array<struct<a: decimal(10, 2), order: date>>", "array<struct<a:decimal(10,2),order:date>>"),
        ("MAP<string, array<bigint>>", "map<string,array<bigint>>"),
        ("struct<a:timestamp,b:double,c:boolean,d:smallint,e:tinyint,f:float>",) * 2,
    ],
)
def test_a_nested_type_is_kept_as_spark_writes_it(stated: str, kept: str) -> None:
    assert bronze_spec(columns={"x": {"type": stated}}).columns["x"].type == kept


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ("struct<>", "is no type"),
        ("struct<a>", "is no type"),
        ("array<int, int>", "is no type"),
        ("array<map<int, string>>", "write map<string, ...>, not 'array<map<int, string>>'"),
        ("struct<`Order ID`: int>", "is no name within a type"),
        ("struct<a: int, A: int>", "differ in upper and lower case only"),
        ("array<foo>", "is no type"),
        ("array<timestamp_ntz>", "is no type that a column can have"),
        ("array<" * 6 + "int" + ">" * 6, "more than 5 types deep"),
        ("array<binary>", "no bytes within a nested type"),
        ("array<decimal(40,2)>", "a decimal has 1 to 38 digits"),
    ],
)
def test_a_type_that_no_table_can_have_is_refused(stated: str, message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        bronze_spec(columns={"x": {"type": stated}})

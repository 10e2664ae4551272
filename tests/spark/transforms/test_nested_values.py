"""Values of nested types, beside those that `test_record_parts.py` compares with Python's own reader."""

from __future__ import annotations

import json
from datetime import datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import Row, SparkSession

from millrace.contracts.spec.nested_type import MAX_DEPTH, nested_type
from millrace.contracts.spec.value_reading import ValueReading
from millrace_spark.transforms.record_parts import RecordColumns
from millrace_spark.transforms.records import CORRUPT, RECORD, RESCUED, parse_columns, parse_json_lines
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE


def parse(spark: SparkSession, kinds: dict[str, str], *records: dict[str, Any] | str) -> list[Row]:
    lines = [(record if isinstance(record, str) else json.dumps(record),) for record in records]
    frame = spark.createDataFrame(lines, f"{RECORD} string").coalesce(1)
    return parse_json_lines(frame, RecordColumns(kinds, {name: name for name in kinds}), "exact").collect()


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
    assert (second["a"].asDict(), second["b"]) == (dict.fromkeys(("price", "at", "ok", "by")), [Decimal("1.10"), None])
    assert json.loads(second[RESCUED]) == {"a.at": "2013-02-31", "b[1]": "x"}
    assert (third["a"].asDict(), third["b"], third[RESCUED]) == (dict.fromkeys(("price", "at", "ok", "by")), [], None)


def test_a_value_of_the_deepest_type_is_read(spark: SparkSession) -> None:
    kinds: dict[str, str] = {}
    values: dict[str, Any] = {}
    for name, shape in (("struct", "struct<x:{}>"), ("array", "array<{}>"), ("map", "map<string,{}>")):
        kind, value = "decimal(9,2)", Decimal("7.25")
        for _ in range(MAX_DEPTH):
            kind, value = shape.format(kind), [value] if "array" in shape else {"x": value}  # type: ignore[assignment]
        assert str(nested_type(kind)) == kind
        kinds[name], values[name] = kind, value
    [row] = parse(spark, kinds, json.dumps(values, default=float))
    read = row.asDict(recursive=True)
    assert ({name: read[name] for name in kinds}, row[RESCUED]) == (values, None)


def test_a_number_of_json_is_none_with_a_comma(spark: SparkSession) -> None:
    kinds = {"a": "decimal(9,3)", "b": "array<decimal(9,3)>", "c": "struct<names:array<string>,price:decimal(9,3)>"}
    record = '{"a": %s, "b": [%s, "1.125", null, -9.5], "c": {"names": [1.5], "price": %s}}'
    texts = ("1.125", '"1,125"', "1.125e0", "11250000E-7", "1.1255", "[1.1255]", '"1.5"', "-9.5", '"\uffff"')
    frame = spark.createDataFrame([(record % ((text,) * 3),) for text in texts], f"{RECORD} string").coalesce(1)
    readings = dict.fromkeys(kinds, ValueReading(decimal_comma=True, null_values=("-9.5",)))
    columns = RecordColumns(kinds, {name: name for name in kinds}, readings)
    price, text = Decimal("1.125"), Decimal("1125")
    *fit, digits, shape, point, none, mark = parse_json_lines(frame, columns, "exact").collect()
    for row in fit:
        assert row[:4] == (price, [price, text, None, None], Row(names=["1.5"], price=price), None)
    for row, sent in ((digits, "1.1255"), (shape, "[1.1255]"), (point, "1.5"), (mark, "\uffff")):
        assert row[:3] == (None, [None, text, None, None], Row(names=["1.5"], price=None))
        assert json.loads(row[RESCUED]) == dict.fromkeys(("a", "b[0]", "c.price"), sent)
    assert none[:4] == (None, [None, text, None, None], Row(names=["1.5"], price=None), None)


def test_a_field_with_a_dot_has_another_key_than_a_part(spark: SparkSession) -> None:
    record = (
        '{"a.b": 1, "a": {"b": "x", "c.d": 2}, "a[0]": 3, "e.f": "y", "": 4, " g": 5, "h (i)": 6, "j(k)": 7, "`l": 8}'
    )
    frame = spark.createDataFrame([(record,)], f"{RECORD} string")
    fields = {"a": "a", "e": "e.f", "g": " g"}
    columns = RecordColumns({"a": "struct<b:int>", "e": "int", "g": "date"}, fields)
    [row] = parse_json_lines(frame, columns, "exact").collect()
    of_columns = {"a.b": "x", "a.`c.d`": "2", "`e.f`": "y", "` g`": "5"}
    more = {"`a.b`": "1", "`a[0]`": "3", "``": "4", "h (i)": "6", "`j(k)`": "7", "```l`": "8"}
    assert dict(json.loads(row[RESCUED], object_pairs_hook=list)) == of_columns | more
    assert len(json.loads(row[RESCUED], object_pairs_hook=list)) == len(of_columns | more)
    assert {key: columns.fit_of(key) for key in of_columns} == {
        "a.b": "int",
        "a.`c.d`": "",
        "`e.f`": "int",
        "` g`": "date or midnight in UTC",
    }
    assert not any(map(columns.fit_of, more))


def test_a_text_that_utf_8_cannot_hold_is_rescued_as_json_has_it(spark: SparkSession) -> None:
    kinds = {"a": "map<string,string>", "b": "array<string>", "c": "struct<x:string>", "d": "string"}
    texts = {"a": r'{"x":"\ud800y"}', "b": r'["\ud800"]', "d": r'"\udc00"'}
    half = f'{{"a": {texts["a"]}, "b": {texts["b"]}, "c": {{"x": "\\ud83d"}}, "d": {texts["d"]}}}'
    first, key, twice = parse(spark, kinds, half, r'{"a": {"\ud800": "y"}}', r'{"d": "\ud800", "d": "y"}')
    assert (first["a"], first["b"], first["c"].asDict(), first["d"]) == (None, None, {"x": None}, None)
    assert json.loads(first[RESCUED]) == {**texts, "c.x": r'"\ud83d"'}
    assert (key["a"], json.loads(key[RESCUED])) == (None, {"a": r'{"\ud800":"y"}'})
    assert (twice["d"], json.loads(twice[RESCUED])) == ("y", {"d": r'"\ud800"'})


def test_the_last_value_of_a_field_counts_and_the_earlier_ones_are_rescued(spark: SparkSession) -> None:
    twice = '{"s": 1, "s": 2, "t": [1], "t": [2], "more": 3, "more": 4}'
    kinds = {"one": "struct<s:int,t:array<int>>", "all": "array<struct<s:int>>", "map": "map<string,int>"}
    first, same = parse(
        spark,
        kinds,
        f'{{"one": {twice}, "all": [{twice}, {{"s": 1, "s": 2, "s": "x"}}], "map": {{"s": 1, "s": 2}}}}',
        '{"one": {"s": 1, "s": 1, "t": null, "t": [2]}, "all": [{"s": null, "s": 1}], "map": {"s": 1, "s": 1}}',
    )
    assert (first["one"], first["all"], first["map"]) == (Row(s=2, t=[2]), [Row(s=2), Row(s=None)], None)
    assert json.loads(first[RESCUED]) == {
        "one.s": "1", "one.t": "[1]", "one.more": '["3","4"]', "map": '{"s":1,"s":2}',
        "all[0].s": "1", "all[0].t": '["[1]","[2]"]', "all[0].more": '["3","4"]', "all[1].s": '["1","2","x"]',
    }  # fmt: skip
    assert tuple(same)[:4] == (Row(s=1, t=[2]), [Row(s=1)], {"s": 1}, None)
    commas = RecordColumns(
        {"a": "double", "b": "double"}, {"a": "a", "b": "b"}, dict.fromkeys("ab", ValueReading(decimal_comma=True))
    )
    line = '{"a": 1.5, "a": "2,5", "b": 1.5, "B": "\\uffff2"}'
    [row] = parse_json_lines(spark.createDataFrame([(line,)], f"{RECORD} string"), commas, "any_case").collect()
    assert row[:2] == (2.5, None)
    assert json.loads(row[RESCUED]) == {"a": "1.5", "b": "1.5", "B": "\uffff2"}


def test_a_part_of_a_file_s_value_is_null_if_its_text_means_that_there_is_none(spark: SparkSession) -> None:
    kinds = {"tags": "array<string>", "of": "map<string,string>"}
    frame = spark.sql(f"SELECT array('-', 'x') tags, map('k', '-', 'l', 'y') of, cast(null as string) {CORRUPT}")
    readings = dict.fromkeys(kinds, ValueReading(null_values=("-",)))
    [row] = parse_columns(frame, RecordColumns(kinds, {}, readings), {}).collect()
    assert (row["tags"], row["of"], row[RESCUED]) == ([None, "x"], {"k": None, "l": "y"}, None)
    line = '{"tags": ["-", [1], [2, "-"]], "of": {"k": "-", "l": "-", "m": "y"}}'
    lines = spark.createDataFrame([(line,)], f"{RECORD} string")
    kinds = {"tags": "array<array<int>>", "of": "struct<k:int,m:int>"}
    [row] = parse_json_lines(lines, RecordColumns(kinds, {name: name for name in kinds}, readings), "exact").collect()
    assert (row["tags"], row["of"].asDict()) == ([None, [1], [2, None]], dict.fromkeys("km"))
    assert row[RESCUED] == '{"of.l":"-","of.m":"y"}'

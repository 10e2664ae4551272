"""Columns that read parts of a field: what is read from JSON agrees with Python's own reader, and nothing is lost."""

from __future__ import annotations

import json
from collections.abc import Collection
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row, SparkSession

from millrace.contracts.spec.nested_type import MAX_DEPTH
from millrace.contracts.spec.record_fields import MAX_PARTS, FieldPath, path_of, path_text
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace_spark.transforms.record_parts import record_columns
from millrace_spark.transforms.records import CORRUPT, RECORD, RESCUED, parse_json_lines
from tests.support.documents.nested_values import SCALARS, VALUES, expected, values_like
from tests.support.documents.specs import bronze_spec
from tests.support.examples import many, settings_for
from tests.support.spark.shared_server import GENERATED_CODE

SESSION = GENERATED_CODE

PATHS = {
    "city": ("customer.address.city", "string"),
    "zip": ("customer.address.zip", "int"),
    "other_city": ("customer.Address.city", "string"),
    "order": ("customer.`order.no`.`x``y`", "array<int>"),
    "first_price": ("items[0].price", "int"),
    "second": ("items[1]", "struct<zip:int>"),
    "cell": ("`grid.größe`[1][0]", "string"),
    "id": ("id", "int"),
    "tags": ("tags", "array<string>"),
    "place": ("place", "struct<city:string,zip:int,order:array<int>>"),
    "counts": ("counts", "map<string,int>"),
    "deep": ("deep", "array<struct<id:int,more:map<string,array<struct<x:int>>>>>"),
}
NESTED = ("tags", "place", "counts", "deep")
CASELESS = {name: path for name, path in PATHS.items() if name not in ("other_city", *NESTED)}


def spec_of(columns: dict[str, tuple[str, str]], field_names: str = "exact") -> BronzeSpec:
    source = {"landing": "orders", "format": "json", "field_names": field_names}
    return bronze_spec(source=source, columns={n: {"type": kind, "from": path} for n, (path, kind) in columns.items()})


def parse(spark: SparkSession, spec: BronzeSpec, *records: dict[str, Any] | str) -> list[Row]:
    lines = [(record if isinstance(record, str) else json.dumps(record),) for record in records]
    frame, columns = spark.createDataFrame(lines, f"{RECORD} string").coalesce(1), record_columns(spec)
    return columns.declared(parse_json_lines(frame, columns, spec.source.field_names)).collect()


def an_object(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Objects in which any field may be missing, and other things in their place."""
    names = {name.replace("__", "."): value for name, value in fields.items()}
    whole = st.fixed_dictionaries({}, optional=names)
    more = st.fixed_dictionaries({}, optional={**names, "vip": SCALARS, **{n.upper(): v for n, v in names.items()}})
    return st.one_of(whole, whole, whole, more, VALUES)


ADDRESSES = an_object(city=SCALARS, zip=SCALARS)
ORDERS = st.fixed_dictionaries({}, optional={"x`y": values_like("array<int>")})
ITEMS = st.lists(an_object(price=SCALARS, zip=SCALARS), max_size=3) | VALUES
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "id": SCALARS,
        "customer": an_object(address=ADDRESSES, Address=ADDRESSES, order__no=ORDERS),
        "items": ITEMS,
        "grid.größe": st.lists(st.lists(SCALARS, max_size=2), max_size=3),
        "customer.address.city": SCALARS,
        **{name: values_like(PATHS[name][1]) for name in NESTED},
    },
)


def part_of(value: Any, path: FieldPath, any_case: bool) -> Any:
    """The part at a path; None if a parent is missing, null, or of another shape."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        elif isinstance(value, dict):
            names = [name for name in value if (name.lower() == step.lower() if any_case else name == step)]
            value = value[names[0]] if len(names) == 1 else None
        else:
            return None
    return value


def same(step: str | int, any_case: bool) -> str | int:
    return step.lower() if any_case and isinstance(step, str) else step


def is_read(value: Any, paths: Collection[FieldPath], any_case: bool) -> bool:
    """Whether columns read every value in `value`; `paths` has their paths below it."""
    if value is None or () in paths:
        return True
    steps = {same(path[0], any_case) for path in paths}
    by_number = isinstance(next(iter(steps)), int)
    parts: list[tuple[str | int, Any]]
    if by_number and isinstance(value, list):
        parts = list(enumerate(value))
    elif not by_number and isinstance(value, dict):
        parts = [(same(name, any_case), part) for name, part in value.items()]
    else:
        return False
    if len({name for name, _ in parts}) < len(parts) or any(name not in steps for name, _ in parts):
        return False
    below = {name: {path[1:] for path in paths if same(path[0], any_case) == name} for name, _ in parts}
    return all(is_read(part, below[name], any_case) for name, part in parts)


@pytest.mark.parametrize(("columns", "field_names"), [(PATHS, "exact"), (CASELESS, "any_case")], ids=["exact", "any"])
@given(records=many(RECORDS))
@settings_for(1)
def test_parts_are_those_that_python_reads(
    spark: SparkSession, columns: dict[str, tuple[str, str]], field_names: str, records: list[dict[str, Any]]
) -> None:
    any_case, paths = field_names == "any_case", {name: path_of(path) for name, (path, _) in columns.items()}
    if any_case:
        records = [{name: value for name, value in record.items() if name not in NESTED} for record in records]
    for record, row in zip(records, parse(spark, spec_of(columns, field_names), *records), strict=True):
        rescued = json.loads(row[RESCUED] or "{}")
        assert row[CORRUPT] is None
        kept = dict[FieldPath, Any]()
        for name, (_, kind) in columns.items():
            value, lost = expected(part_of(record, paths[name], any_case), kind)
            assert row.asDict(recursive=True)[name] == value, (name, record)
            kept |= {(*paths[name], *path): part for path, part in lost.items()}
        for field, value in record.items():
            below = {path[1:] for path in paths.values() if path[0] == field}
            if not below or not is_read(value, below, any_case):
                kept[field,] = value
        for path, value in kept.items():
            text = rescued.pop(path_text(path))
            assert text == value if isinstance(value, str) or value is None else json.loads(text) == value
        assert rescued == {}, record


def test_numbers_in_parts_keep_every_digit(spark: SparkSession) -> None:
    price = "12345678901234567890.123456789"
    columns = {"price": ("items[0].price.eur", "decimal(38,9)"), "note": ("items[0].note", "string")}
    [row] = parse(spark, spec_of(columns), f'{{"items": [{{"price": {{"eur": {price}}}, "note": "1e5"}}]}}')
    assert (row["price"], row["note"], row[RESCUED]) == (Decimal(price), "1e5", None)


def test_a_number_beside_texts_with_commas_is_none_and_a_part_that_is_no_number_stays(spark: SparkSession) -> None:
    price = {"type": "decimal(9,3)", "decimal_comma": True}
    columns = {
        "first": {**price, "from": "items[0]"}, "second": {"from": "items[1]"}, "third": {"from": "items[2].x"},
        "price": {**price, "from": "o.price"}, "name": {"from": "o.name"},
    }  # fmt: skip
    spec = bronze_spec(source={"landing": "orders", "format": "json"}, columns=columns)
    record = '{"items": [%s, 1.5, {"x": 2.5}], "o": {"price": %s, "name": 1.5}}'
    number, text, lost = parse(spark, spec, *(record % (value, value) for value in ("1.125", '"1,125"', "1.1255")))
    for row in (number, text):
        assert row[:6] == (Decimal("1.125"), "1.5", "2.5", Decimal("1.125"), "1.5", None)
    assert (lost[1:3], lost["name"]) == (("1.5", "2.5"), "1.5")
    assert json.loads(lost[RESCUED]) == {"items[0]": "1.1255", "o.price": "1.1255"}


@pytest.mark.parametrize("field_names", ["exact", "any_case"])
def test_a_part_at_the_deepest_place_is_read(spark: SparkSession, field_names: str) -> None:
    kind, value = "decimal(9,2)", Decimal("7.25")
    for _ in range(MAX_DEPTH):
        kind, value = f"array<{kind}>", [value]  # type: ignore[assignment]
    by_name = by_number = value
    for _ in range(MAX_PARTS):
        by_name, by_number = {"a b": by_name}, [by_number]  # type: ignore[assignment]
    places = {"name": ("names", *["a b"] * MAX_PARTS), "number": ("numbers", *[0] * MAX_PARTS)}
    spec = spec_of({column: (path_text(place), kind) for column, place in places.items()}, field_names)
    [row] = parse(spark, spec, json.dumps({"names": by_name, "numbers": by_number}, default=float))
    assert (row["name"], row["number"], row[RESCUED]) == (value, value, None)

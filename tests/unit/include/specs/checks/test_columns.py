"""`from` of bronze columns names fields; each mistake is reported with its place and its likely fix."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.documents.refusals import only_problem, problems_of
from tests.support.documents.specs import bronze_document, write_specs

FILES = {"landing": "orders", "format": "json"}
KAFKA = {"kafka": "main", "topics": ["orders"], "format": "json"}


@pytest.mark.parametrize("source", [FILES, {**FILES, "format": "csv"}, KAFKA], ids=lambda source: str(source))
def test_a_bronze_column_reads_a_field_of_any_name(tmp_path: Path, source: dict[str, Any]) -> None:
    columns = {"order_id": {"from": "Order ID"}, "amount": {"from": "`Amount (EUR).net`"}, "id": {"from": "order_id"}}
    if source["format"] != "csv":
        paths = {"city": "customer.address.city", "name": "customer.`a.b`", "first": "`a.b`[0]"}
        columns |= {name: {"from": path} for name, path in paths.items()}
    assert problems_of(write_specs(tmp_path, bronze_document(source=source, columns=columns))) == ()


@pytest.mark.parametrize(
    ("stated", "fix"),
    [
        ("Amt. EUR", "A field of this name is written '`Amt. EUR`'"),
        ("upper(customer.city)", "state SQL in silver"),
        ("`name", "A field of this name is written '```name`'"),
    ],
)
def test_what_is_no_name_of_a_field_is_refused(tmp_path: Path, stated: str, fix: str) -> None:
    columns = {"order_id": {"from": stated}}
    problem = only_problem(write_specs(tmp_path, bronze_document(columns=columns)))
    assert (problem.key, problem.message) == ("columns.order_id.from", "this is not the name of a field")
    assert fix in problem.fix


@pytest.mark.parametrize(
    ("changes", "columns", "key", "message"),
    [
        ({}, {"a": {}, "b": {"from": "a"}}, "columns.b.from", "the column a reads this field too"),
        (
            {"field_names": "any_case"}, {"a": {"from": "Id"}, "b": {"from": "ID"}}, "columns.b.from",
            "the column a reads this field too",
        ),
        ({"format": "csv", "header": False}, {"a": {"from": "Id"}}, "columns.a.from", "do not name their fields"),
        (
            {**KAFKA, "transforms": {"a": "offset"}}, {"a": {"from": "Id"}}, "columns.a.from",
            "an expression of source.transforms fills this column",
        ),
        ({**KAFKA, "format": "csv"}, {"a": {"from": "Id"}}, "columns.a.from", "records do not name their fields"),
        ({"format": "csv"}, {"a": {"from": "b.c"}}, "columns.a.from", "a part of the field b, and CSV values have no"),
        ({}, {"a": {"from": "b.c"}, "d": {"from": "b.c"}}, "columns.d.from", "the column a reads this part too"),
        ({}, {"a": {"from": "b[0]"}, "d": {"from": "b.c"}}, "columns.d.from", "is in a list, and that of the column a"),
        ({}, {"a": {"from": "b.c"}, "b": {}}, "columns.b", "the column a reads a part of this"),
        ({}, {"b": {}, "a": {"from": "b.c"}}, "columns.a.from", "the column b reads the whole of which this is"),
        ({}, {"a": {"from": ".".join("abcdefghijkl")}}, "columns.a.from", "no column reads so deep"),
        (
            {"field_names": "any_case"}, {"a": {"from": "b.c"}, "d": {"from": "B.C"}}, "columns.d.from",
            "the column a reads this part too",
        ),
    ],
)  # fmt: skip
def test_a_field_that_a_column_cannot_read_is_refused(
    tmp_path: Path, changes: dict[str, Any], columns: dict[str, Any], key: str, message: str
) -> None:
    source = changes if "kafka" in changes else {**FILES, **changes}
    problem = only_problem(write_specs(tmp_path, bronze_document(source=source, columns=columns)))
    assert problem.key == key
    assert message in problem.message
    assert problem.fix


@pytest.mark.parametrize("source", [{**FILES, "format": "csv", "header": False}, {**KAFKA, "format": "csv"}])
def test_only_records_that_name_their_fields_are_read_in_any_case(tmp_path: Path, source: dict[str, Any]) -> None:
    document = bronze_document(source={**source, "field_names": "any_case"})
    assert "is for records that name their fields" in only_problem(write_specs(tmp_path, document)).message

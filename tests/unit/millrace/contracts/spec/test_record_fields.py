"""The names of fields that bronze columns read: stated in a spec, and found in a file."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from millrace.contracts.spec.record_fields import (
    FieldPath,
    field_text,
    fields_among,
    fields_of,
    path_of,
    path_text,
    paths_of,
)
from tests.support.documents.specs import bronze_spec

COLUMNS = {"order_id": {"from": "Order ID"}, "amount": {}, "city": {"from": "`a.b`"}}


@given(st.text(min_size=1), st.lists(st.text(min_size=1) | st.integers(0, 999_999_999)))
@example("f(", ["x)"])
@example("a", [" b", "c[0]", "[1]", 0, 0])
@example("`", ["``", "a.b"])
@example("f(x)\n", [])
@example("f(x)", [])
def test_every_path_can_be_stated(name: str, below: list[str | int]) -> None:
    assert path_of(path_text((name, *below))) == (name, *below)
    assert path_of(field_text(name)) == (name,)


@pytest.mark.parametrize(
    "text",
    ["", ".", "a.", ".a", "a..b", "`a", "`a`b", "``", "upper(name)", "upper(a.b)", "Amt. EUR", "a .b", "a.`"],
)
def test_what_could_mean_something_else_is_no_name(text: str) -> None:
    with pytest.raises(ValueError, match="no name of a field"):
        path_of(text)


def test_a_path_names_parts_and_counts_elements() -> None:
    paths: dict[str, FieldPath] = {
        "customer.address.city": ("customer", "address", "city"),
        "`a.b`.`c[0]`[1][2].d e": ("a.b", "c[0]", 1, 2, "d e"),
        "Größe [m²]": ("Größe [m²]",),
        "`items[0]`": ("items[0]",),
        "items[0]": ("items", 0),
    }
    assert {text: path_of(text) for text in paths} == paths
    spec = bronze_spec(columns={"city": {"from": "customer.city"}, "customer": {}})
    assert paths_of(spec) == {"city": ("customer", "city"), "customer": ("customer",)}
    assert fields_of(spec) == {"city": "customer", "customer": "customer"}


def test_a_column_reads_the_field_that_it_states_or_the_one_of_its_name() -> None:
    spec = bronze_spec(columns=COLUMNS)
    assert fields_of(spec) == {"order_id": "Order ID", "amount": "amount", "city": "a.b"}
    assert fields_among(["a.b", "Amount", "Order ID", "order_id"], spec) == {"order_id": "Order ID", "city": "a.b"}

    source = {"kafka": "main", "topics": ["orders"], "format": "json", "transforms": {"amount": "offset"}}
    filled = bronze_spec(source=source, columns=COLUMNS)
    assert fields_of(filled) == {"order_id": "Order ID", "city": "a.b"}, "an expression over the message fills amount"


def test_in_any_case_two_names_may_not_be_meant_for_one_column() -> None:
    source = {"landing": "orders", "format": "csv", "field_names": "any_case"}
    spec = bronze_spec(source=source, columns=COLUMNS)
    assert fields_among(["ORDER ID", "A.B", "other", "Other"], spec) == {"order_id": "ORDER ID", "city": "A.B"}
    with pytest.raises(ValueError, match="the column amount could read Amount and AMOUNT"):
        fields_among(["Amount", "AMOUNT"], spec)

"""Key bounds as SQL literals, which Delta prunes files by."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spark_jobs.transforms.silver.changes import bounds_sql, is_orderable

KINDS = ["string", "tinyint", "smallint", "int", "bigint", "date", "timestamp"]
WHOLE_NUMBERS = ["tinyint", "smallint", "int", "bigint"]


def as_spark_reads(literal: str) -> str:
    """The value of a Spark SQL string literal that stands between single quotes."""
    assert literal[0] == literal[-1] == "'"
    body = literal[1:-1]
    assert not re.search(r"(?<!\\)(\\\\)*'", body), "the literal ends before its end"
    return re.sub(r"\\(.)", r"\1", body, flags=re.DOTALL)


def test_a_string_is_bounded_between_its_least_and_greatest() -> None:
    bounds = {"min_flight_id": "2013-01-01-AA-1", "max_flight_id": "2013-01-02-UA-9"}
    assert bounds_sql({"flight_id": "string"}, bounds, "t.") == [
        "t.`flight_id` BETWEEN '2013-01-01-AA-1' AND '2013-01-02-UA-9'"
    ]


@pytest.mark.parametrize("kind", WHOLE_NUMBERS)
def test_whole_numbers_are_written_bare(kind: str) -> None:
    assert bounds_sql({"n": kind}, {"min_n": "-5", "max_n": "17"}) == ["`n` BETWEEN -5 AND 17"]


def test_times_are_written_as_what_they_are() -> None:
    kinds = {"d": "date", "t": "timestamp"}
    bounds = {
        "min_d": "2013-01-01",
        "max_d": "2013-01-02",
        "min_t": "2013-01-01 05:15:00",
        "max_t": "2013-01-02 00:00:00.5",
    }
    assert bounds_sql(kinds, bounds) == [
        "`d` BETWEEN DATE'2013-01-01' AND DATE'2013-01-02'",
        "`t` BETWEEN TIMESTAMP'2013-01-01 05:15:00' AND TIMESTAMP'2013-01-02 00:00:00.5'",
    ]


def test_each_key_has_its_own_bound_in_the_order_of_the_keys() -> None:
    kinds = {"origin": "string", "time_hour": "timestamp", "n": "int"}
    bounds = {f"{label}_{name}": "1" for name in ("n", "origin") for label in ("min", "max")}
    assert bounds_sql(kinds, bounds) == ["`origin` BETWEEN '1' AND '1'", "`n` BETWEEN 1 AND 1"]


@pytest.mark.parametrize(
    "bounds", [{}, {"min_n": "1"}, {"max_n": "1"}, {"min_n": None, "max_n": None}, {"min_n": "1", "max_n": None}]
)
def test_a_key_without_both_bounds_is_not_bounded(bounds: dict[str, str | None]) -> None:
    assert bounds_sql({"n": "int"}, bounds) == []


def test_an_empty_string_is_a_bound() -> None:
    assert bounds_sql({"k": "string"}, {"min_k": "", "max_k": "b"}) == ["`k` BETWEEN '' AND 'b'"]


@given(low=st.text(), high=st.text())
def test_any_text_is_read_back_as_it_was_and_ends_where_it_should(low: str, high: str) -> None:
    (condition,) = bounds_sql({"k": "string"}, {"min_k": low, "max_k": high})
    literal = r"('(?:[^'\\]|\\.)*')"
    found = re.fullmatch(rf"`k` BETWEEN {literal} AND {literal}", condition, flags=re.DOTALL)
    assert found
    assert (as_spark_reads(found[1]), as_spark_reads(found[2])) == (low, high)


@given(number=st.integers(-(2**63), 2**63 - 1))
def test_any_whole_number_is_read_back_as_it_was(number: int) -> None:
    (condition,) = bounds_sql({"n": "bigint"}, {"min_n": str(number), "max_n": str(number)})
    assert condition == f"`n` BETWEEN {number} AND {number}"


def test_only_types_whose_literals_prune_are_bounded() -> None:
    others = ["boolean", "float", "double", "decimal(10,2)", "binary"]
    assert [kind for kind in [*KINDS, *others] if is_orderable(kind)] == KINDS

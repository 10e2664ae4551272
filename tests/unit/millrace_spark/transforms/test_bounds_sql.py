"""Key bounds as SQL literals, which Delta prunes files by."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from millrace_spark.transforms.silver.changes import bounds_sql, is_orderable

KINDS = ["string", "tinyint", "smallint", "int", "bigint", "date", "timestamp"]
WHOLE_NUMBERS = ["tinyint", "smallint", "int", "bigint"]


def as_spark_reads(literal: str) -> str:
    """The value of a Spark SQL string literal that stands between single quotes."""
    assert literal[0] == literal[-1] == "'"
    body = literal[1:-1]
    assert not re.search(r"(?<!\\)(\\\\)*'", body), "the literal ends before its end"
    return re.sub(r"\\(.)", r"\1", body, flags=re.DOTALL)


def test_each_key_with_both_bounds_has_its_own_condition_in_the_order_of_the_keys() -> None:
    kinds = {"origin": "string", "day": "date", "at": "timestamp"} | {name: name for name in WHOLE_NUMBERS}
    bounds = {f"{label}_{name}": value for name in WHOLE_NUMBERS for label, value in (("min", "-5"), ("max", "17"))}
    bounds |= {"min_origin": "", "max_origin": "b", "min_day": "2013-01-01", "max_day": "2013-01-02"}
    bounds |= {"min_at": "2013-01-01 05:15:00", "max_at": "2013-01-02 00:00:00.5"}
    assert bounds_sql(kinds, bounds, "t.") == [
        "t.`origin` BETWEEN '' AND 'b'",
        "t.`day` BETWEEN DATE'2013-01-01' AND DATE'2013-01-02'",
        "t.`at` BETWEEN TIMESTAMP'2013-01-01 05:15:00' AND TIMESTAMP'2013-01-02 00:00:00.5'",
        *(f"t.`{name}` BETWEEN -5 AND 17" for name in WHOLE_NUMBERS),
    ]
    for one_bound in ({}, {"min_n": "1"}, {"max_n": "1"}, {"min_n": "1", "max_n": None}):
        assert bounds_sql({"n": "int"}, one_bound) == []


@given(low=st.text(), high=st.text())
def test_any_text_is_read_back_as_it_was_and_ends_where_it_should(low: str, high: str) -> None:
    (condition,) = bounds_sql({"k": "string"}, {"min_k": low, "max_k": high})
    literal = r"('(?:[^'\\]|\\.)*')"
    found = re.fullmatch(rf"`k` BETWEEN {literal} AND {literal}", condition, flags=re.DOTALL)
    assert (as_spark_reads(found[1]), as_spark_reads(found[2])) == (low, high)


def test_only_types_whose_literals_prune_are_bounded() -> None:
    others = ["boolean", "float", "double", "decimal(10,2)", "binary"]
    assert [kind for kind in [*KINDS, *others] if is_orderable(kind)] == KINDS

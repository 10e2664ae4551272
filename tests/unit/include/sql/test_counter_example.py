"""Terms that are the same in other words have no counter-example, whatever the type of their column."""

from __future__ import annotations

import pytest

from include.sql.counter_example import CounterExample, counter_example
from include.sql.terms import term_of


def example(given: str, wanted: str, **types: str) -> CounterExample | None:
    terms = [term_of(text, lambda parts: ".".join(("t", *parts))) for text in (given, wanted)]
    assert terms[0] is not None
    assert terms[1] is not None
    return counter_example(terms[0], terms[1], {f"t.{name}": kind for name, kind in types.items()})


@pytest.mark.parametrize(
    ("given", "wanted", "kind"),
    [
        ("date_add(date_sub(x, 1), 1)", "x", "date"),
        ("x + interval 1 day", "date_add(x, 1)", "date"),
        ("timestamp(x)", "x", "date"),
        ("to_date(x)", "x", ""),
        ("date_trunc('quarter', x)", "trunc(date_trunc('month', x), 'Q')", "timestamp"),
        ("date_trunc('week', x)", "date_sub(to_date(x), dayofweek(date_sub(to_date(x), 1)) - 1)", "timestamp"),
        ("last_day(x)", "date_sub(add_months(trunc(x, 'MM'), 1), 1)", "timestamp"),
        ("x + x", "2 * x", "decimal(10,2)"),
        ("'2'", "2 + 0 * x", "int"),
        ("x", "to_date(x)", "string"),
        ("lower(x)", "upper(x)", "string"),
        ("date_add(x, 1)", "x", "array<date>"),
        ("x > 1", "'true'", "int"),
        ("x + interval 1 fortnight", "x", "date"),
        ("x", "y", "date"),
    ],
)
def test_what_may_be_the_same_has_no_counter_example(given: str, wanted: str, kind: str) -> None:
    assert example(given, wanted, **{"x": kind} if kind else {}) is None


def test_a_column_without_a_type_has_an_example_of_each_type() -> None:
    assert example("x + interval 1 day", "x")
    assert example("1", "x")

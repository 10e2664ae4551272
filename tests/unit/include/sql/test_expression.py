"""What is known of an expression by its text alone."""

from __future__ import annotations

import pytest

from include.sql.expression import expression_of


@pytest.mark.parametrize(
    "text",
    [
        "amount >= 0 OR kind = 'refund'",
        "extract(year from day) > 2000",
        "a IS DISTINCT FROM b",
        "name RLIKE '^[a-z]+$' AND s.f IN (1, 2)",
        "size(filter(xs, x -> x > 1)) > 0",
        "`current_date` > 1",
        "unix_timestamp(at) > 1",
    ],
)
def test_a_value_follows_from_its_row(text: str) -> None:
    assert expression_of(text).follows_from_row


@pytest.mark.parametrize(
    "text",
    [
        "day <= current_date",
        "at < now()",
        "unix_timestamp( ) > 1",
        "day < 'today'",
        "at < TIMESTAMP'now'",
        "uuid() = a",
        "rand() < share",
        "session_user = name",
        "input_file_name() = name",
        "my_udf(a)",
        "own.functions.f(a)",
        "x IN (SELECT 1)",
        "EXISTS (TABLE other)",
        "row_number() OVER (ORDER BY a) > 1",
        "a = 'not closed",
    ],
)
def test_a_value_may_depend_on_more_than_its_row(text: str) -> None:
    assert not expression_of(text).follows_from_row

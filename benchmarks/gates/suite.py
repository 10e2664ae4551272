"""Forty table rules on a table of orders, which its rows pass, and the tables themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from millrace.contracts.spec.expectation import Action, Expectation

COLUMNS = {
    "id": "{id}",
    "customer": "cast(pmod(xxhash64({id}), 100000) AS int)",
    "amount": "cast(pmod(xxhash64({id}, 2), 100000) / 100 AS decimal(10, 2))",
    "weight": "cast(pmod(xxhash64({id}, 1), 1000) AS int)",
    "status": "element_at(array('new', 'paid', 'sent', 'returned'), cast(1 + pmod({id} + {event}, 4) AS int))",
    "country": "element_at(array('AT', 'BE', 'CH', 'DE', 'DK', 'ES', 'FR', 'IT'), cast(1 + pmod({id}, 8) AS int))",
    "ts": "timestamp_seconds(1704067200 + {id})",
    "day": "cast(timestamp_seconds(1704067200 + {id}) AS date)",
    "md5": "md5(cast({id} AS string))",
    "note": "if(pmod({id}, 10) = 0, NULL, concat('order ', {id}))",
}
"""Column -> SQL of its value, for the id of an order and the number of its event."""

NUMBERS, TEXTS, TIMES = ("id", "customer", "amount", "weight"), ("status", "country", "md5", "note"), ("ts", "day")


def rules(
    numbers: Sequence[str] = NUMBERS, texts: Sequence[str] = TEXTS, times: Sequence[str] = TIMES
) -> list[Expectation]:
    """Return rules on these columns, 40 by default: two on each column, four figures of each number, four more."""
    of_rows = [
        _rule("expect_column_values_to_not_be_null", column=name, mostly=0.5) for name in (*numbers, *texts, *times)
    ]
    of_rows += [_between("values", name, 0, 10**9) for name in numbers]
    of_rows += [_between("value_lengths", name, 1, 99) for name in texts]
    of_rows += [_between("values", name, "2020-01-01", "2100-01-01") for name in times]
    of_rows += [
        _rule("expect_column_values_to_be_in_set", column="status", value_set=["new", "paid", "sent", "returned"]),
        _rule("expect_column_values_to_match_regex", column="md5", regex="^[0-9a-f]{32}$"),
    ]
    figures = [_between(figure, name, 0, 10**16) for name in numbers for figure in ("min", "max", "mean", "sum")]
    rows, unique = (
        _rule("expect_table_row_count_to_be_between", min_value=1),
        _rule("expect_column_values_to_be_unique", column="id"),
    )
    return [*of_rows, *figures, rows, unique]


def _between(what: str, column: str, low: Any, high: Any) -> Expectation:
    return _rule(f"expect_column_{what}_to_be_between", column=column, min_value=low, max_value=high)


def _rule(name: str, **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=Action.FAIL)

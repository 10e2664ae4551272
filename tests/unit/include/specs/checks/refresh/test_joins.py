"""A join must carry the value of the group; a join across values is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.documents.checked_gold import joined, outcome
from tests.support.documents.specs import gold_document


@pytest.mark.parametrize(
    ("on", "refresh"),
    [
        ("p.day = o.day", "day"),
        ("p.code = o.order_id and o.day <=> p.day", "day"),
        (
            "(p.code = o.order_id) and (p.amount > 1 or p.amount is null) and to_date(p.event_at) = o.day",
            "to_date(event_at)",
        ),
    ],
)
def test_a_join_that_carries_the_value_is_sound(tmp_path: Path, on: str, refresh: str) -> None:
    assert outcome(tmp_path, joined(on, refresh)) == ([], ())


def test_a_value_is_carried_over_several_joins(tmp_path: Path) -> None:
    document = joined("p.day = o.day", "day")
    third = {"table": "silver.prices", "join": "left", "on": "q.day = p.day and q.code = o.order_id"}
    document = {**document, "sources": {**document["sources"], "q": third}}
    document["refresh_from"] = {**document["refresh_from"], "q": "day"}
    assert outcome(tmp_path, document) == ([], ())


@pytest.mark.parametrize(
    ("on", "refresh"),
    [("p.order_id = o.order_id", "day"), ("p.code = o.order_id", "to_date(event_at)"), ("p.amount > o.amount", "day")],
)
def test_a_join_across_values_is_refused(tmp_path: Path, on: str, refresh: str) -> None:
    problems, _ = outcome(tmp_path, joined(on, refresh))
    assert "refresh_from.p: sources.p.on joins rows with other values of day: it does not compare this" in problems[0]
    assert "= o.day` to sources.p.on; or, if" in problems[0]
    assert "write sources.p.lookup: true in place of refresh_from.p" in problems[0]


def test_a_join_on_the_value_with_another_value_in_refresh_from_is_refused(tmp_path: Path) -> None:
    for refresh in ("date_trunc('month', day)", "date_add(day, 1)"):
        problems, _ = outcome(tmp_path, joined("p.day = o.day", refresh))
        assert f"day gives o.day, but refresh_from.p gives {refresh}: for day = 2024-05-15" in problems[0]


@pytest.mark.parametrize(
    ("on", "refresh", "group"),
    [
        ("p.day = o.event_at", "day", "o.day"),
        ("p.day = o.day or p.code = 'x'", "day", "o.day"),
        ("p.day between o.day and o.event_at", "day", "o.day"),
        ("p.code = o.amount and p.day = o.day", "code", "o.amount"),  # '01' = 1
        ("p.code = 1 and p.day = o.day", "code", "1"),
        ("p.code = substr(o.order_id, 1, 2)", "code", "substr(o.order_id, 1, 2)"),
        ("p.day = o.day", "day", "p.day"),  # null for an order without a price
    ],
)
def test_a_join_that_may_carry_the_value_is_a_note(tmp_path: Path, on: str, refresh: str, group: str) -> None:
    first = group.replace("o.", "").replace("p.", "")
    problems, notes = outcome(tmp_path, joined(on, refresh, first=first, group=group))
    assert problems == []
    assert len(notes) == 1


def test_a_group_by_the_value_of_a_joined_source_is_sound_only_for_an_inner_join(tmp_path: Path) -> None:
    assert outcome(tmp_path, joined("p.day = o.day", "day", group="p.day", join="inner")) == ([], ())


def test_a_group_by_a_lookup_is_found_without_the_alias_of_its_column(tmp_path: Path) -> None:
    lookup = {"table": "silver.prices", "join": "left", "on": "p.order_id = o.order_id", "lookup": True}
    document = gold_document(
        sources={"o": {"table": "silver.orders"}, "p": lookup}, refresh_from={"o": "order_id"}, group_by={"day": "code"}
    )
    (problem,), _ = outcome(tmp_path, document)
    assert "group_by.day: a row of the lookup 'p' may belong to many values of refresh_by" in problem
    assert "compute day from o" in problem

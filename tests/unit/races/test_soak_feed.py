"""The feed of a soak knows what its tables must hold."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from random import Random

from races.soak.feed import Event, Feed, gold_rows, interval, refused, silver_rows

DAY = date(2013, 1, 1)


def event(number: int, order: str, amount: int = 1, op: str = "put") -> Event:
    return Event(number, order, amount, DAY.isoformat(), op)


def test_an_order_is_what_its_last_event_says_whatever_came_first() -> None:
    told = [event(2, "a", 5), event(1, "a", 4), event(3, "b", 6), event(4, "b", -1, op="delete"), event(5, "c", -7)]
    silver = silver_rows(told)
    assert silver == {("a", 2, 5, DAY), ("c", 5, 7, DAY)}
    assert gold_rows(silver) == {(DAY, 2, 12)}
    assert [one.event for one in refused(told)] == [5]


def test_every_event_is_delivered_once_and_each_kind_of_event_is_among_them(tmp_path: Path) -> None:
    feed = Feed(tmp_path, Random(7))
    for number in (1, 8, 1, 3):
        feed.deliver(number)
    files = sorted(tmp_path.rglob("*.json"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert sorted(line["event"] for line in lines) == [one.event for one in feed.events] == list(range(len(lines)))
    assert {file.parent.name for file in files} == {f"date={interval(n).start:%Y-%m-%d}" for n in (1, 3, 8)}
    assert any(one.op == "delete" for one in feed.events)
    assert any(refused(feed.events))

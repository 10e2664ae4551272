"""A walk of deliveries, replays, discards and readings again, against a small model: no row is lost or doubled."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from millrace.cli.quarantine.listing import BY_HAND
from millrace.contracts.row_status import RowStatus
from millrace.control.ledger.resolution import table_id
from millrace.control.quarantine.events import Decision, QuarantineEvents, RowEvent
from millrace.errors import ExitCode, Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import AT_LEAST_0, Lakehouse, order

BRONZE, SILVER = "bronze.orders", "silver.orders"
ANN = Decision("ann", "so", BY_HAND)
STEPS = 12
OPEN, REPLAYED, DISCARDED = RowStatus.OPEN, RowStatus.REPLAYED, RowStatus.DISCARDED


@dataclass
class Walk:
    """The operations so far, and their expected result.

    Attributes:
        merged: number of an event -> (key, hour, amount), of those that silver has seen pass.
        refused: number of an event -> (key, hour, amount, where it stands), of the others.
    """

    shop: Lakehouse
    chance: random.Random
    merged: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    refused: dict[int, tuple[str, int, int, RowStatus]] = field(default_factory=dict)
    days: int = 0
    events: int = 0
    done: Counter[str] = field(default_factory=Counter)

    def step(self) -> None:
        """Do one thing, whatever comes."""
        ways: list[Callable[[], None]] = [self.deliver, self.replay, self.replay, self.discard, self.reopen, self.again]
        way = self.deliver if self.days == 0 else self.chance.choice(ways)
        way()
        self.done[way.__name__] += 1

    def deliver(self) -> None:
        self.days += 1
        lines = []
        for _ in range(4):
            self.events += 1
            key, hour, amount = self.chance.randint(1, 4), self.chance.randint(0, 20), self.chance.randint(-9, 9)
            lines.append(order(key, amount, hour, seq=self.events))
            if amount >= 0:
                self.merged[self.events] = (f"o{key}", hour, amount)
            else:
                self.refused[self.events] = (f"o{key}", hour, amount, OPEN)
        given(self.shop, BRONZE, lines, self.days)
        report = self.shop.run(SILVER, self.days)
        assert (report.outcome, report.rows.are_conserved) == (Outcome.COMMITTED, True), report.message

    def replay(self) -> None:
        wanted = self.some(OPEN)
        report = self.shop.replay(SILVER, assign={"amount": "abs(amount)"}, rows={"ids": list(wanted) or ["none"]})
        assert report.exit_code is ExitCode.OK, report.message
        if wanted:
            assert (report.rows.read, report.rows.are_conserved) == (len(wanted), True)
        for number in wanted.values():
            key, hour, amount, _ = self.refused[number]
            self.merged[number] = (key, hour, -amount)
        self.stand(wanted, REPLAYED)

    def discard(self) -> None:
        self.say(RowEvent.DISCARDED, self.some(OPEN), DISCARDED)

    def reopen(self) -> None:
        self.say(RowEvent.REOPENED, self.some(DISCARDED), OPEN)

    def again(self) -> None:
        report = self.shop.run(SILVER, self.chance.randint(1, self.days), reprocess=True)
        assert (report.outcome, report.rows.read) == (Outcome.COMMITTED, 4), report.message

    def say(self, event: RowEvent, rows: dict[str, int], status: RowStatus) -> None:
        paths = self.shop.paths
        QuarantineEvents(paths).record(event, SILVER, table_id(paths.table(SILVER)), rows, ANN)
        self.stand(rows, status)

    def stand(self, rows: dict[str, int], status: RowStatus) -> None:
        for number in rows.values():
            self.refused[number] = (*self.refused[number][:3], status)

    def some(self, status: RowStatus) -> dict[str, int]:
        """Row id -> number of its event, of about half the rows that stand so."""
        waiting = {row.id: number_of(row) for row in self.shop.waiting(SILVER, status)}
        return {row: number for row, number in waiting.items() if self.chance.random() < 0.6}

    def check(self) -> None:
        """Silver holds the greatest event of each key, and each refused event is in quarantine once."""
        newest = {}
        for number, (key, hour, amount) in self.merged.items():
            newest[key] = max(newest.get(key, (-1, 0, 0)), (hour, number, amount))
        expected = [(key, amount) for key, (_, _, amount) in sorted(newest.items())]
        assert self.shop.rows(SILVER, "order_id", "amount") == expected
        found = Counter((number_of(row), row.status) for row in self.shop.waiting(SILVER, *RowStatus))
        assert found == Counter((number, row[3]) for number, row in self.refused.items())


def number_of(row: Any) -> int:
    number: int = json.loads(row.received)["event_seq"]
    return number


@pytest.mark.faults
@pytest.mark.parametrize("seed", range(1, 4))
def test_every_refused_row_is_in_exactly_one_place_after_any_operations(lakehouse: Lakehouse, seed: int) -> None:
    lakehouse.specs(bronze_document(), silver_document(expectations=[AT_LEAST_0]))
    walk = Walk(lakehouse, random.Random(seed))
    for _ in range(STEPS):
        walk.step()
        walk.check()
    assert {"deliver", "replay"} <= set(walk.done), "nothing was seen"
    assert any(row[3] is REPLAYED for row in walk.refused.values())

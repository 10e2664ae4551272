"""Faults around a bronze batch, a full disk or a clock that goes back: no row is lost or doubled."""

from __future__ import annotations

import errno
import json

import pytest
import time_machine

from include.control.landing.file_states import file_states
from include.control.ledger.ledger import Ledger
from include.errors import Outcome
from tests.support.lakehouse import Lakehouse, order
from tests.support.ledger.ledger_failures import APPENDS_A_RUN, failing_appends

pytestmark = pytest.mark.slow

ORDERS = "bronze.orders"


def test_a_disk_that_is_full_at_any_append_to_the_ledger_loses_and_doubles_nothing(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, APPENDS_A_RUN + 1):
        lakehouse.deliver(1, f"{number}.json", json.dumps(order(number, number)) + "\n{broken\n")
        with failing_appends(monkeypatch, number, errno.ENOSPC):
            failed = lakehouse.run(ORDERS)
        assert (failed.outcome, failed.error_class) == (Outcome.DISK_FULL, "DiskFullError"), number
    report = lakehouse.run(ORDERS)
    assert report.certified_version == report.version
    every = [f"o{number}" for number in range(1, APPENDS_A_RUN + 1)]
    assert [row[0] for row in lakehouse.rows(ORDERS, "order_id")] == every
    assert len(lakehouse.quarantine(ORDERS)) == len(every)
    states = file_states(Ledger(lakehouse.paths), ORDERS, report.table_id)
    assert [(file.status, file.rows.read if file.rows else None) for file in states] == [("loaded", 2)] * len(every)


def test_a_clock_that_goes_back_changes_nothing(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    first = lakehouse.run(ORDERS)
    with time_machine.travel("2001-01-01"):
        assert lakehouse.run(ORDERS).outcome is Outcome.NO_OP
        lakehouse.deliver(1, "b.json", [order(2, 6)])
        second = lakehouse.run(ORDERS)
    third = lakehouse.run(ORDERS)
    assert (second.batch_seq, second.certified_version) == ((first.batch_seq or 0) + 1, second.version)
    assert (third.outcome, third.version) == (Outcome.NO_OP, second.version)
    assert [row[0] for row in lakehouse.rows(ORDERS, "order_id")] == ["o1", "o2"]

"""What goes wrong around a bronze batch: a disk that is full, a clock that goes back. No row is lost, none doubled."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import time_machine

from include.control.file_states import file_states
from include.control.ledger import Ledger
from include.control.ops_table import OpsTable
from include.errors import Outcome
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"
APPENDS_A_RUN = 6
"""What a run writes to `ops.*`: files and intent, the winner, rows of files and closing, the gate's result."""


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, at: int) -> Iterator[None]:
    """Let the append number `at` to `ops.*` find the disk full, and every later one too."""
    append, count = OpsTable.append, iter(range(1, 1000))

    def refused(table: OpsTable, events: Sequence[dict[str, Any]]) -> None:
        if events and next(count) >= at:
            raise OSError(errno.ENOSPC, "No space left on device")
        append(table, events)

    with monkeypatch.context() as patch:
        patch.setattr(OpsTable, "append", refused)
        yield


def test_a_disk_that_is_full_at_any_append_to_the_ledger_loses_and_doubles_nothing(
    lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(1, APPENDS_A_RUN + 1):
        lakehouse.deliver(1, f"{number}.json", json.dumps(order(number, number)) + "\n{broken\n")
        with full_disk(monkeypatch, at=number):
            failed = lakehouse.run(ORDERS)
        assert (failed.outcome, failed.error_class) == (Outcome.FAILED, "OSError"), number
        assert "No space left on device" in failed.message
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

"""A ledger that cannot be written to: every run ends at the append that a test says."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from include.control.ledger.ops_table import OpsTable

APPENDS_A_RUN = 6
"""What a run writes to `ops.*`: files and intent, the winner, rows of files and closing, the gate's result."""


@contextmanager
def failing_appends(monkeypatch: pytest.MonkeyPatch, at: int, error: int) -> Iterator[None]:
    """Let the append number `at` to `ops.*`, and every later one, fail with an error of the operating system."""
    append, count = OpsTable.append, iter(range(1, 1000))

    def refused(table: OpsTable, events: Sequence[dict[str, Any]]) -> None:
        if events and next(count) >= at:
            raise OSError(error, os.strerror(error))
        append(table, events)

    with monkeypatch.context() as patch:
        patch.setattr(OpsTable, "append", refused)
        yield

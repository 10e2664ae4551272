"""A ledger that cannot be written to, from the append that a test chooses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from include.control.ledger.ops_table import OpsTable


@contextmanager
def failing_appends(monkeypatch: pytest.MonkeyPatch, at: int, error: int) -> Iterator[None]:
    """Let append number `at` to `ops.*`, and every later one, fail with an OSError."""
    append, count = OpsTable.append, iter(range(1, 1000))

    def append_or_fail(table: OpsTable, events: Sequence[dict[str, Any]]) -> None:
        if events and next(count) >= at:
            raise OSError(error, os.strerror(error))
        append(table, events)

    with monkeypatch.context() as patch:
        patch.setattr(OpsTable, "append", append_or_fail)
        yield

"""Waiting until something is so."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(happens: Callable[[], object], patience_s: float = 60) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + patience_s
    while not happens():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)

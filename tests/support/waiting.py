"""Wait for a condition."""

from __future__ import annotations

import time
from collections.abc import Callable


def wait_for(condition: Callable[[], object], patience_s: float = 60) -> None:
    """Wait until `condition` returns something true."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not become true in time"
        time.sleep(0.2)

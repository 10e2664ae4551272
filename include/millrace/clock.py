"""The clock that callers can replace by another one, and a clock that never jumps."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def steady_now_s() -> float:
    """Return seconds since some moment in the past; the time in which the machine was suspended counts."""
    # Linux's monotonic clock stops during a suspension. That of macOS, which has no CLOCK_BOOTTIME, does not.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

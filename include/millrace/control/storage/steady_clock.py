"""A clock that never jumps, for how long ago something happened in this process."""

from __future__ import annotations

import time


def steady_now_s() -> float:
    """Return seconds since some moment in the past; the time in which the machine was suspended counts."""
    # Linux's monotonic clock stops during a suspension. That of macOS, which has no CLOCK_BOOTTIME, does not.
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))

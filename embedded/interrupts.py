"""Turns the first signal to stop into one KeyboardInterrupt, and lets no second one break the clean-up."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_once() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt in the main thread: the first one alone."""
    for number in TO_STOP:
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in TO_STOP:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt

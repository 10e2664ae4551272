"""Turn the first signal to stop into a KeyboardInterrupt, and ignore the next ones, so that clean-up completes."""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

TO_STOP = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupt_once() -> None:
    """Let the first SIGINT, SIGTERM or SIGHUP raise KeyboardInterrupt in the main thread; ignore later ones."""
    for number in TO_STOP:
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    for number in TO_STOP:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt

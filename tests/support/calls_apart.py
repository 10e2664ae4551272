"""Calls for the process that reads landing files. It imports this module with them, so that it must be small."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path


def turn_for_ever() -> None:
    """Take all the time there is."""
    while True:
        pass


def turn_for(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(100_000))


class OddError(Exception):
    """An error that pickle makes without its second part."""

    def __init__(self, text: str, more: str) -> None:
        super().__init__(f"{text} {more}")


def raise_odd() -> None:
    raise OddError("neither", "file")


def end_once(mark: Path) -> str:
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "read"


def raise_it(error: Exception) -> None:
    raise error


def end_by(by: signal.Signals) -> None:
    os.kill(os.getpid(), by)

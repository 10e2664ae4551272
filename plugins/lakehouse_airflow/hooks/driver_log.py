"""Write a driver's whole output to a file, and pick the lines for the task log."""

from __future__ import annotations

import logging
import os
import re
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from airflow.sdk.log import redact

TAIL_LINES = 30

_SHOWN = (
    re.compile(r"^\d\d/\d\d/\d\d \d\d:\d\d:\d\d (WARN|ERROR|FATAL) "),
    re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) millrace(?:_spark)?\b"),
    re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (WARNING|ERROR|CRITICAL) "),
)
_HARMLESS = re.compile(r" WARN (?:NativeCodeLoader|SparkStringUtils): ")
_LEVELS = {"WARN": logging.WARNING, "FATAL": logging.ERROR}


class DriverLog:
    """Stores what a driver prints.

    Args:
        path: the file for all lines, created at the first line. Secrets that Airflow knows are masked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)

    @property
    def tail(self) -> str:
        """The last lines, for a driver that ended without a report."""
        return "\n".join(self._tail)

    def record(self, lines: Iterable[str]) -> Iterator[str]:
        """Write each line to the file and yield it, stripped; if the disk is full, only the file misses lines."""
        file = self._open()
        try:
            for raw in lines:
                line = str(redact(raw.rstrip()))
                with suppress(OSError):
                    file.write(f"{line}\n")
                self._tail.append(line)
                yield line
        finally:
            with suppress(OSError):
                file.close()

    def _open(self) -> TextIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self.path.open("a", buffering=1)
        except OSError:
            return Path(os.devnull).open("a")

    def record_and_pick(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Write all lines to the file; yield those for the task log, each with its level."""
        for line in self.record(lines):
            if level := level_of(line):
                yield level, line


def level_of(line: str) -> int:
    """Return the level at which the task log shows a line; 0 for a line that only the file gets.

    The task log shows warnings and errors of Spark and Python, and all lines of Millrace's own loggers.

    >>> level_of("26/07/01 12:00:00 WARN TaskSetManager: Lost task 0.0"), level_of("26/07/01 12:00:00 INFO Utils: x")
    (30, 0)
    """
    level = next((match.group(1) for pattern in _SHOWN if (match := pattern.match(line))), None)
    if level is None or _HARMLESS.search(line):
        return 0
    return _LEVELS.get(level) or int(logging.getLevelName(level))

"""A driver's output: all of it in a file, and the few lines that matter for the task log."""

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
    re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (DEBUG|INFO|WARNING|ERROR|CRITICAL) (?:millrace|spark_jobs|include)\b"),
    re.compile(r"^\d{4}-\d\d-\d\d [\d:,]+ (WARNING|ERROR|CRITICAL) "),
)
_KNOWN_AND_HARMLESS = re.compile(r" WARN (?:NativeCodeLoader|SparkStringUtils): ")
_LEVELS = {"WARN": logging.WARNING, "FATAL": logging.ERROR}


class DriverLog:
    """Keeps what a driver prints.

    Args:
        path: the file that gets every line; made when the first one comes. Secrets that Airflow knows are masked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tail: deque[str] = deque(maxlen=TAIL_LINES)

    @property
    def tail(self) -> str:
        """The last lines, for a driver that ended without saying why."""
        return "\n".join(self._tail)

    def record(self, lines: Iterable[str]) -> Iterator[str]:
        """Pass `lines` on, stripped, after writing each to the file; a full disk costs the file lines, nothing else."""
        file = self._opened()
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

    def _opened(self) -> TextIO:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return self.path.open("a", buffering=1)
        except OSError:
            return Path(os.devnull).open("a")

    def record_and_pick(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """The same, but pass on only what belongs in the task log, each line with its level."""
        for line in self.record(lines):
            if level := level_of(line):
                yield level, line


def level_of(line: str) -> int:
    """The level at which the task log shows a line; 0 for one that only the file keeps.

    Warnings and errors of Spark and of Python are shown, and all that Millrace's own loggers say.

    >>> level_of("26/07/01 12:00:00 WARN TaskSetManager: Lost task 0.0"), level_of("26/07/01 12:00:00 INFO Utils: x")
    (30, 0)
    """
    found = next((match for pattern in _SHOWN if (match := pattern.match(line))), None)
    if found is None or _KNOWN_AND_HARMLESS.search(line):
        return 0
    return _LEVELS.get(found.group(1)) or int(logging.getLevelName(found.group(1)))

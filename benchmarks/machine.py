"""The load of this machine, the cost of an empty Spark job on it, and a trap for starts of Java."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from benchmarks.cost import Cost, measure
from benchmarks.peers import Naive

QUIET = 0.5
"""The load average up to which the machine counts as quiet."""


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def empty_job(peer: Naive, folder: Path) -> Cost:
    """Return the cost of a spark-submit that only makes a session: the minimum of every time of N.

    Call this first: it also resolves the jars, so that no round has to.
    """
    script = folder / "empty_job.py"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.write_text("from pyspark.sql import SparkSession\n\nSparkSession.builder.getOrCreate().range(1).collect()\n")
    command = [*peer.submit(), str(script)]
    measure(command, peer.environment(), folder / "first.log")
    return measure(command, peer.environment(), folder / "second.log").whole


class JavaTrap:
    """An environment in which every start of java fails and is recorded.

    Args:
        folder: the folder for a `bin/java` that records its start.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """Return `base` with the trap as the only Java that Spark can find."""
        java = self._folder / "bin" / "java"
        shutil.rmtree(self._folder, ignore_errors=True)
        java.parent.mkdir(parents=True)
        java.write_text(f'#!/bin/sh\necho "$@" >> "{self._mark}"\nexit 97\n')
        java.chmod(0o755)
        return {**base, "JAVA_HOME": str(self._folder), "PATH": f"{java.parent}{os.pathsep}{base.get('PATH', '')}"}

    @property
    def was_sprung(self) -> bool:
        """Whether anything started java."""
        return self._mark.exists()

    @property
    def _mark(self) -> Path:
        return self._folder / "started"

"""The data plane: what runs in a Spark driver.

It never imports Airflow.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path


def without_archives(path: list[str]) -> list[str]:
    """Python's path without the archives of the very PySpark that is installed as a folder.

    spark-submit puts them first, and Python compiles modules from an archive again at each start: half a CPU-second.
    A Spark distribution elsewhere keeps its own.
    """
    others = [entry for entry in path if not entry.endswith(".zip")]
    installed = PathFinder.find_spec("pyspark", others)
    if installed is None or installed.origin is None:
        return path
    archives = Path(installed.origin).parent / "python" / "lib"
    return [entry for entry in path if Path(entry).parent != archives]


sys.path[:] = without_archives(sys.path)

"""One driver of a race: several threads append to one table, and note each acknowledged token.

spark-submit races/driver.py TABLE THREADS SECONDS ACKNOWLEDGED
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from uuid import uuid4

from pyspark.sql import SparkSession


class Acknowledged:
    """A file with one line per acknowledged token, and one per error."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()

    def note(self, line: str) -> None:
        """Write a line at once, so that it survives the death of this process."""
        with self._lock, self._path.open("a") as file:
            file.write(f"{line}\n")


def append_until(deadline: float, acknowledged: Acknowledged, append: Callable[[str], None]) -> None:
    """Append one token after another until `deadline`."""
    while time.monotonic() < deadline:
        token = uuid4().hex
        try:
            append(token)
        except Exception as error:  # noqa: BLE001  an error is an answer, too: it promises nothing
            acknowledged.note(f"error {type(error).__name__}")
        else:
            acknowledged.note(f"token {token}")


def appender(spark: SparkSession, table: str) -> Callable[[str], None]:
    """Return a function that appends a row in its own session, with a token in the commit."""
    session = spark.newSession()

    def append(token: str) -> None:
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", token)
        session.range(1).write.format("delta").mode("append").save(table)

    return append


def read_notes(path: Path) -> tuple[list[str], Counter[str]]:
    """Return the acknowledged tokens, and the count of each error."""
    lines = [line.split() for line in path.read_text().splitlines()] if path.is_file() else []
    tokens = [text for kind, text in lines if kind == "token"]
    return tokens, Counter(text for kind, text in lines if kind == "error")


def main(table: str, threads: str, seconds: str, acknowledged: str) -> None:
    """Append for `seconds`."""
    spark, file = SparkSession.builder.getOrCreate(), Acknowledged(Path(acknowledged))
    deadline = time.monotonic() + float(seconds)
    with ThreadPoolExecutor(int(threads)) as pool:
        for running in [pool.submit(append_until, deadline, file, appender(spark, table)) for _ in range(int(threads))]:
            running.result()


if __name__ == "__main__":
    main(*sys.argv[1:])

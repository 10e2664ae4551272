"""The same as `races.driver` with delta-rs: `python -m races.delta_rs_writer TABLE SECONDS ACKNOWLEDGED [OPTIONS]`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from races.driver import Acknowledged, append_until

ROW = pa.table({"id": pa.array([0], pa.int64())})


def appender(table: str, options: dict[str, str]) -> Callable[[str], None]:
    """Return a function that appends a row, with a token in its commit."""

    def append(token: str) -> None:
        properties = CommitProperties(custom_metadata={"userMetadata": token})
        write_deltalake(DeltaTable(table, storage_options=options), ROW, mode="append", commit_properties=properties)

    return append


def main(table: str, seconds: str, acknowledged: str, options: str = "{}") -> None:
    """Append for `seconds`."""
    deadline = time.monotonic() + float(seconds)
    append_until(deadline, Acknowledged(Path(acknowledged)), appender(table, json.loads(options)))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Make a Delta table as if its versions had been written days earlier."""

from __future__ import annotations

import json
import os
from pathlib import Path

DAY_S = 24 * 3600


def age(table: Path, upto: int, days: int) -> None:
    """Age the versions of a table up to `upto`; no process may have the table in mind, as Spark has."""
    log = table / "_delta_log"
    for checksum in log.glob("*.crc"):  # also hidden ones
        checksum.unlink()
    for version in range(upto + 1):
        _age_commit(table, log / f"{version:020d}.json", days)


def _age_commit(table: Path, commit: Path, days: int) -> None:
    then = commit.stat().st_mtime - days * DAY_S
    actions = [json.loads(line) for line in commit.read_text().split("\n") if line]
    for action in actions:
        for kind, key in (("commitInfo", "timestamp"), ("add", "modificationTime"), ("remove", "deletionTimestamp")):
            if kind in action:
                action[kind][key] -= days * DAY_S * 1000
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))
    written = [action[kind]["path"] for action in actions for kind in ("add", "cdc") if kind in action]
    for file in (commit, *(table / name for name in written)):
        os.utime(file, (then, then))

"""A read that has begun is not cut off by newer certificates, nor by a vacuum within the retention."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.paths import LakehousePaths
from millrace import certified
from tests.support.ledger.delta_tables import commit_file
from tests.support.reading.certified_lake import ORDERS, orders, write_version

RETAIN_DAYS = 30
DAY_MS = 24 * 3600 * 1000


@pytest.mark.parametrize(("days", "is_cut_off"), [(14, False), (40, True)])
def test_an_open_version_is_read_for_the_retention_after_it_was_replaced(
    tmp_path: Path, days: int, is_cut_off: bool
) -> None:
    paths = LakehousePaths(tmp_path)
    write_version(paths, orders("old"))
    write_version(paths, orders("a", "b"))
    read = certified(ORDERS, tmp_path)
    dataset = read.dataset()
    write_version(paths, orders("new"))
    # Version 1 replaced version 0 40 days ago. A reader has version 1 open, which was replaced so many days ago.
    for version, age in ((1, 40), (2, days)):
        replace_earlier(commit_file(paths.table(ORDERS), version), age)

    deleted = DeltaTable(str(paths.table(ORDERS))).vacuum(RETAIN_DAYS * 24, dry_run=False)

    assert (read.version, len(deleted)) == (1, 2 if is_cut_off else 1)
    assert certified(ORDERS, tmp_path).arrow()["name"].to_pylist() == ["new"]
    if is_cut_off:
        with pytest.raises(FileNotFoundError, match="parquet"):
            dataset.to_table()
    else:
        assert dataset.to_table()["name"].to_pylist() == ["a", "b"]


def replace_earlier(commit: Path, days: int) -> None:
    """Change a commit as if it had replaced its files so many days earlier."""
    actions = [json.loads(line) for line in commit.read_text().splitlines()]
    for action in actions:
        if "remove" in action:
            action["remove"]["deletionTimestamp"] -= days * DAY_MS
    commit.write_text("".join(f"{json.dumps(action)}\n" for action in actions))

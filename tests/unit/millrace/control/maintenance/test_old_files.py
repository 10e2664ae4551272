"""The files that VACUUM deletes, against a model: all but those of the versions that must stay, and the young ones."""

from __future__ import annotations

import json
import os
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.control.log.stored_tables import open_table
from millrace.control.maintenance.old_files import old_files, oldest_whole
from millrace.control.storage.stored_files import files_below
from tests.support.ledger.delta_tables import append, commit_file, create_table, delete_all, optimize

NOW, RETENTION = datetime.now(UTC), timedelta(days=10)


def set_time(path: Path, version: int, at: datetime) -> None:
    """Make a commit, and the files that it has written, as if at another time."""
    file, ms = commit_file(path, version), round(at.timestamp() * 1000)
    actions = [json.loads(line) for line in file.read_text().split("\n") if line]
    for action in actions:
        for kind, key in (("commitInfo", "timestamp"), ("add", "modificationTime"), ("remove", "deletionTimestamp")):
            if kind in action:
                action[kind][key] = ms
        if "add" in action:
            os.utime(path / action["add"]["path"], (at.timestamp(), at.timestamp()))
    file.write_text("".join(f"{json.dumps(action)}\n" for action in actions))


def data_files(path: Path, version: int | None = None) -> set[str]:
    return {Path(uri).name for uri in DeltaTable(str(path), version=version).file_uris()}


@pytest.mark.parametrize("seed", range(8))
def test_a_file_is_due_if_no_version_since_the_retention_has_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    create_table(tmp_path)
    for _ in range(12):
        live = len(data_files(tmp_path))
        change = chance.choice([append, append, *([optimize] if live > 1 else []), *([delete_all] if live else [])])
        change(tmp_path)
    ages = sorted((chance.uniform(0, 20) for _ in range(13)), reverse=True)
    for version, age in enumerate(ages):
        set_time(tmp_path, version, NOW - timedelta(days=age))
    strays = {f"stray-{number}.parquet": chance.uniform(0, 20) for number in range(4)}
    for name, age in strays.items():
        (tmp_path / name).touch()
        at = (NOW - timedelta(days=age)).timestamp()
        os.utime(tmp_path / name, (at, at))
    newest, cutoff = 12, RETENTION.days
    # A version stays if it is the newest, or was the newest at some time within the retention.
    stay = [version for version in range(13) if version == newest or ages[version + 1] < cutoff]
    needed = {name for version in stay for name in data_files(tmp_path, version)}
    young = {name for name, age in strays.items() if age < cutoff}
    every = {file.name for file in tmp_path.glob("*.parquet")}

    found = old_files(tmp_path, open_table(tmp_path), files_below(tmp_path), NOW, RETENTION)

    assert {file.path for file in found.due} == every - needed - young
    assert oldest_whole(tmp_path, RETENTION, NOW) == stay[0]

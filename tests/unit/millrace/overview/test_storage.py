"""The files of a table, and what the next maintenance does with them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from millrace.control.ledger.commit_history import CommitHistory, TableWrite
from millrace.control.maintenance.health import LEAST_SMALL_FILES, Rewrite, health_of
from millrace.overview.storage import Storage, storage_of
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import append, commit_file, create_table, optimize

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ORDERED = silver_spec(zorder_by=["amount", "day"])


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path)


def files(paths: LakehousePaths, count: int) -> Path:
    """Write small files; return the folder of the table."""
    path = Path(paths.table(ORDERED.table))
    create_table(path)
    for _ in range(count):
        append(path)
    return path


def storage(paths: LakehousePaths, spec: object = ORDERED) -> Storage:
    return storage_of(spec, paths, CommitHistory(paths))  # type: ignore[return-value, arg-type]


def z_order(paths: LakehousePaths, path: Path) -> int:
    """Make a commit as that of OPTIMIZE ZORDER BY, and record it."""
    version = optimize(path)
    file = commit_file(path, version)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["operationParameters"]["zOrderBy"] = '["amount","day"]'
    file.write_text("\n".join(map(json.dumps, lines)))
    CommitHistory(paths).record(TableWrite(ORDERED.table, "run", NOON, "OPTIMIZE", version=version))
    return version


def test_many_small_files_are_joined_next(paths: LakehousePaths) -> None:
    assert storage_of(ORDERED, paths, CommitHistory(paths)) is None, "it was never written"
    files(paths, LEAST_SMALL_FILES)
    found = storage(paths, silver_spec())
    assert found.answer == "The next maintenance joins 8 small files."
    assert (found.small_share, found.log.commits, found.log.after_checkpoint) == (1.0, 9, 9)
    assert next((each.name, each.files) for each in found.classes) == ("under 1 MiB", 8)
    assert storage(paths, silver_spec(maintenance={"optimize": "off"})).answer == (
        "The next maintenance leaves the files as they are."
    )


def test_the_last_z_order_is_found_through_the_ledger_and_decides_as_the_job_does(paths: LakehousePaths) -> None:
    path = files(paths, 3)
    assert storage(paths).next_rewrite is Rewrite.Z_ORDER
    assert (
        storage(paths).answer
        == "The next maintenance rewrites the table in the order of amount, day: 100% of it is new."
    )
    z_order(paths, path)
    append(path)
    CommitHistory(paths).record(TableWrite(ORDERED.table, "run", NOON, "OPTIMIZE", version=1))
    CommitHistory(paths).record(TableWrite(ORDERED.table, "run", NOON, "VACUUM", version=None))
    found = storage(paths)
    assert found.health == health_of(path, ORDERED), "the same measures as the maintenance job"
    assert 0 < found.health.written_share < 1
    assert found.ordered_at
    assert (found.optimized_at, found.vacuumed_at) == (NOON, None)

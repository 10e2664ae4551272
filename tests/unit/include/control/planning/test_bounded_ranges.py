"""A silver batch reads whole commits up to its limit of rows or files; further batches read the rest."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.spec.table_spec import SilverSpec
from include.control.log.batch import BatchSources
from include.control.planning.source_ranges import limit_batch
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec

BRONZE = "bronze.orders"
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def write_log(folder: Path, *sizes: int | None) -> LakehousePaths:
    """Write the log of a table: each version from 1 on adds a file with so many rows; None joins small files."""
    paths = LakehousePaths(folder)
    for version, rows in enumerate([0, *sizes]):
        metrics = {"numOutputRows": "99" if rows is None else str(rows)}
        info = {"timestamp": datetime.now(UTC).timestamp() * 1000, "operationMetrics": metrics}
        add = {"path": f"{version}.parquet", "dataChange": rows is not None}
        log = paths.table(BRONZE) / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        (log / f"{version:020d}.json").write_text(f"{json.dumps({'commitInfo': info})}\n{json.dumps({'add': add})}\n")
    return paths


def batch_ranges(
    spec: SilverSpec, paths: LakehousePaths, after: int, upto: int, readable_since: datetime = LONG_AGO
) -> list[tuple[int, int]]:
    """Return the ranges of the batches that read all versions after `after` up to `upto`."""
    ranges: list[tuple[int, int]] = []
    while after < upto:
        sources = BatchSources(ranges={BRONZE: (after, upto)})
        end = limit_batch(spec, sources, paths, readable_since).ranges[BRONZE][1]
        ranges.append((after, end))
        after = end
    return ranges


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(0, 9), min_size=1, max_size=8), limit=st.integers(1, 12), consumed=st.integers(0, 3))
def test_batches_are_contiguous_and_keep_the_row_limit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, consumed: int
) -> None:
    paths = write_log(tmp_path_factory.mktemp("lake"), *sizes)
    after = min(consumed, len(sizes) - 1)
    ranges = batch_ranges(silver_spec(max_rows_per_batch=limit), paths, after, len(sizes))
    assert [start for start, _ in ranges] == [after, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == len(sizes)
    for start, end in ranges:
        rows = sizes[start:end]
        assert sum(rows) <= limit or sum(rows[:-1]) == 0, "a commit is never split"
    for (start, end), (_, next_end) in pairwise(ranges):
        assert sum(sizes[start : end + 1]) > limit, "no batch is smaller than it must be"
        assert next_end > end


def test_a_batch_keeps_the_limit_of_files_and_of_rows_also_from_the_first_version_on(tmp_path: Path) -> None:
    paths = write_log(tmp_path, 5, 5, 5)
    assert batch_ranges(silver_spec(max_files_per_batch=2), paths, 0, 3) == [(0, 2), (2, 3)]
    sources = BatchSources(ranges={BRONZE: (None, 3)})
    assert limit_batch(silver_spec(max_rows_per_batch=6), sources, paths, LONG_AGO).ranges == {BRONZE: (None, 1)}
    assert limit_batch(silver_spec(), sources, paths, LONG_AGO) is sources, "a spec without a limit reads everything"


def test_commits_without_changed_data_do_not_count(tmp_path: Path) -> None:
    paths = write_log(tmp_path, 5, 5, None)
    assert batch_ranges(silver_spec(max_rows_per_batch=10, max_files_per_batch=2), paths, 0, 3) == [(0, 3)]


def test_versions_that_delta_or_the_log_no_longer_has_are_read_with_the_next_commit(tmp_path: Path) -> None:
    paths, spec = write_log(tmp_path, 5, 5, 5, 5), silver_spec(max_rows_per_batch=1)
    assert batch_ranges(spec, paths, 0, 4, datetime.now(UTC) + timedelta(days=1)) == [(0, 4)]
    for version in range(3):
        (paths.table(BRONZE) / "_delta_log" / f"{version:020d}.json").unlink()
    assert batch_ranges(spec, paths, 0, 4) == [(0, 3), (3, 4)]

"""A silver batch reads whole commits up to its limit of rows or files; further batches read the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st

from include.control.log.batch import BatchSources
from include.control.planning.source_ranges import limit_batch
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.silver.bounded_sources import LONG_AGO, batch_ranges, write_bronze

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@given(sizes=SIZES, limit=st.integers(1, 12), consumed=st.integers(0, 3))
def test_batches_are_contiguous_and_keep_the_row_limit(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, consumed: int
) -> None:
    paths = write_bronze(tmp_path_factory.mktemp("lake"), sizes)
    after = min(consumed, len(sizes) - 1)
    ranges = batch_ranges(silver_spec(max_rows_per_batch=limit), paths, after, LONG_AGO)
    assert [start for start, _ in ranges] == [after, *(end for _, end in ranges[:-1])]
    assert ranges[-1][1] == len(sizes)
    for start, end in ranges:
        rows = sizes[start:end]
        assert sum(rows) <= limit or sum(rows[:-1]) == 0, "a commit is never split"
    for (start, end), (_, next_end) in pairwise(ranges):
        assert sum(sizes[start : end + 1]) > limit, "no batch is smaller than it must be"
        assert next_end > end


def test_the_file_limit_works_like_the_row_limit(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5, 5])
    assert batch_ranges(silver_spec(max_files_per_batch=2), paths, 0, LONG_AGO) == [(0, 2), (2, 3)]


def test_a_first_batch_starts_at_the_first_version(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5])
    sources = BatchSources(ranges={"bronze.orders": (None, 2)})
    limited = limit_batch(silver_spec(max_rows_per_batch=6), sources, paths, LONG_AGO)
    assert limited.ranges == {"bronze.orders": (None, 1)}


def test_commits_without_changed_data_do_not_count(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5])
    assert DeltaTable(str(paths.table("bronze.orders"))).optimize.compact()["numFilesAdded"] == 1
    assert batch_ranges(silver_spec(max_rows_per_batch=10, max_files_per_batch=2), paths, 0, LONG_AGO, upto=3) == [
        (0, 3)
    ]


def test_no_batch_ends_at_a_version_that_delta_no_longer_reads(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5, 5])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert batch_ranges(silver_spec(max_rows_per_batch=1), paths, 0, tomorrow) == [(0, 3)]


def test_commits_missing_from_the_log_are_read_with_the_next_commit(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5, 5, 5])
    table = paths.table("bronze.orders")
    DeltaTable(str(table)).create_checkpoint()
    for version in (0, 1, 2):
        (table / "_delta_log" / f"{version:020d}.json").unlink()
    assert batch_ranges(silver_spec(max_rows_per_batch=1), paths, 0, LONG_AGO) == [(0, 3), (3, 4)]


def test_a_batch_without_a_limit_reads_everything(tmp_path: Path) -> None:
    sources = BatchSources(ranges={"bronze.orders": (None, 7)})
    assert limit_batch(silver_spec(), sources, LakehousePaths(tmp_path), LONG_AGO) is sources

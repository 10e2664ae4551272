"""A silver batch reads whole commits up to its limit of rows or files; further batches read the rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from include.control.log.batch import BatchSources
from include.control.planning.source_ranges import limit_batch
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import clean_log
from tests.support.silver.bounded_sources import LONG_AGO, batch_ranges, write_bronze

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@settings(max_examples=25)
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


def test_a_batch_keeps_the_limit_of_files_and_of_rows_also_from_the_first_version_on(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5, 5])
    assert batch_ranges(silver_spec(max_files_per_batch=2), paths, 0, LONG_AGO) == [(0, 2), (2, 3)]
    sources = BatchSources(ranges={"bronze.orders": (None, 3)})
    limited = limit_batch(silver_spec(max_rows_per_batch=6), sources, paths, LONG_AGO)
    assert limited.ranges == {"bronze.orders": (None, 1)}
    assert limit_batch(silver_spec(), sources, paths, LONG_AGO) is sources, "a spec without a limit reads everything"


def test_commits_without_changed_data_do_not_count(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5])
    assert DeltaTable(str(paths.table("bronze.orders"))).optimize.compact()["numFilesAdded"] == 1
    assert batch_ranges(silver_spec(max_rows_per_batch=10, max_files_per_batch=2), paths, 0, LONG_AGO, upto=3) == [
        (0, 3)
    ]


def test_versions_that_delta_or_the_log_no_longer_has_are_read_with_the_next_commit(tmp_path: Path) -> None:
    paths = write_bronze(tmp_path, [5, 5, 5, 5])
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    assert batch_ranges(silver_spec(max_rows_per_batch=1), paths, 0, tomorrow) == [(0, 4)]
    clean_log(paths.table("bronze.orders"), below=3)
    assert batch_ranges(silver_spec(max_rows_per_batch=1), paths, 0, LONG_AGO) == [(0, 3), (3, 4)]

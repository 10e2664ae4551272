"""OPTIMIZE rewrites a table with enough small files, or with enough bytes written since the last Z-order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from include.control.maintenance.health import (
    GREATEST_FILE,
    LEAST_FILE,
    LEAST_SMALL_FILES,
    MIB,
    DataFile,
    Rewrite,
    health_of,
    health_of_files,
    target_file_bytes,
)
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import append, create_table, optimize

SIZES = st.lists(st.integers(1, 2 * GREATEST_FILE), max_size=30)


def in_one_partition(*sizes: int, written: bool = True) -> list[DataFile]:
    """Files of these sizes in an unpartitioned table."""
    return [DataFile((), size, written) for size in sizes]


@given(SIZES)
def test_the_target_size_is_a_thousandth_of_the_table_within_limits(sizes: list[int]) -> None:
    target = health_of_files(in_one_partition(*sizes)).target_file_bytes
    assert LEAST_FILE <= target <= GREATEST_FILE
    assert target in (LEAST_FILE, GREATEST_FILE, sum(sizes) // 1000)
    assert target_file_bytes(50_000 * GREATEST_FILE) == GREATEST_FILE


@given(SIZES, st.integers(1, GREATEST_FILE))
def test_a_file_size_in_the_spec_is_the_target_size(sizes: list[int], stated: int) -> None:
    assert health_of_files(in_one_partition(*sizes), stated).target_file_bytes == stated


@pytest.mark.parametrize("ordered", [True, False])
def test_an_empty_table_is_left_as_it_is(*, ordered: bool) -> None:
    assert health_of_files([]).rewrite(ordered=ordered) is Rewrite.NONE


def test_enough_small_files_of_one_partition_are_compacted() -> None:
    small = [MIB] * LEAST_SMALL_FILES
    assert health_of_files(in_one_partition(*small)).rewrite(ordered=False) is Rewrite.BIN_PACK
    assert health_of_files(in_one_partition(*small[1:])).rewrite(ordered=False) is Rewrite.NONE
    apart = [DataFile((number,), MIB) for number in range(100)]
    assert health_of_files(apart).small_files == 0, "none of them could be put together with another one"


def test_files_of_half_the_target_and_more_are_large_enough() -> None:
    assert health_of_files(in_one_partition(*[LEAST_FILE // 2] * 20)).small_files == 0
    assert health_of_files(in_one_partition(*[LEAST_FILE // 2 - 1] * 20)).small_files == 20


def test_a_table_is_ordered_again_after_a_fifth_of_it_was_written() -> None:
    ordered = in_one_partition(*[LEAST_FILE] * 8, written=False)
    due = health_of_files([*ordered, *in_one_partition(LEAST_FILE, LEAST_FILE)])
    assert (due.written_share, due.rewrite(ordered=True)) == (0.2, Rewrite.Z_ORDER)
    assert due.rewrite(ordered=False) is Rewrite.NONE, "a table without zorder_by has no order to keep"
    soon = health_of_files([*ordered, *in_one_partition(LEAST_FILE)])
    assert soon.rewrite(ordered=True) is Rewrite.NONE


def test_few_small_files_of_an_ordered_table_are_only_compacted() -> None:
    files = in_one_partition(*[LEAST_FILE] * 100, written=False) + in_one_partition(*[MIB] * LEAST_SMALL_FILES)
    assert health_of_files(files).rewrite(ordered=True) is Rewrite.BIN_PACK


def test_the_only_file_of_a_partition_is_ordered_unless_it_is_too_large() -> None:
    assert health_of_files(in_one_partition(2 * LEAST_FILE - 1)).written_share == 0
    assert health_of_files(in_one_partition(2 * LEAST_FILE)).rewrite(ordered=True) is Rewrite.Z_ORDER


def test_a_table_that_was_never_ordered_counts_as_written(tmp_path: Path) -> None:
    create_table(tmp_path)
    append(tmp_path)
    append(tmp_path)
    found = health_of(tmp_path, silver_spec(zorder_by=["amount"]))
    assert (found.files, found.small_files, found.written_share) == (2, 2, 1.0)
    optimize(tmp_path)
    append(tmp_path)
    assert health_of(tmp_path, silver_spec(zorder_by=["amount"])).written_share == 1.0, "put together, not ordered"

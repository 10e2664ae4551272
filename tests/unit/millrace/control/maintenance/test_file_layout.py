"""OPTIMIZE rewrites a table with enough small files, or with enough bytes written since the last Z-order."""

from __future__ import annotations

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.maintenance.file_layout import (
    GREATEST_FILE,
    LEAST_COMPUTED_FILE,
    LEAST_FILE,
    LEAST_SMALL_FILES,
    MIB,
    DataFile,
    Rewrite,
    layout_of_files,
    rows_per_file,
)
from tests.support.documents.specs import gold_spec, silver_spec

SILVER = silver_spec()


def in_one_partition(*sizes: int, written: bool = True) -> list[DataFile]:
    """Files of these sizes in an unpartitioned table."""
    return [DataFile((), size, written) for size in sizes]


def test_the_target_size_is_that_of_the_spec_or_a_thousandth_of_the_table_within_limits() -> None:
    def target_of(size: int, spec: AnySpec) -> int:
        return layout_of_files(in_one_partition(size), spec).target_file_bytes

    for spec, least in ((SILVER, LEAST_FILE), (gold_spec(), LEAST_COMPUTED_FILE)):
        sizes = (1, 1000 * (least + 1), 50_000 * GREATEST_FILE)
        assert [target_of(size, spec) for size in sizes] == [least, least + 1, GREATEST_FILE]
    assert target_of(1, silver_spec(maintenance={"target_file_size": 7})) == 7


def test_enough_small_files_of_one_partition_are_compacted() -> None:
    small = [MIB] * LEAST_SMALL_FILES
    assert layout_of_files(in_one_partition(*small), SILVER).rewrite(ordered=False) is Rewrite.BIN_PACK
    assert layout_of_files(in_one_partition(*small[1:]), SILVER).rewrite(ordered=False) is Rewrite.NONE
    apart = [DataFile((number,), MIB) for number in range(100)]
    assert layout_of_files(apart, SILVER).small_files == 0, "none of them could be put together with another one"
    assert layout_of_files(in_one_partition(*[LEAST_FILE // 2] * 20), SILVER).small_files == 0
    assert layout_of_files(in_one_partition(*[LEAST_FILE // 2 - 1] * 20), SILVER).small_files == 20


def test_a_table_is_ordered_again_after_a_fifth_of_it_was_written() -> None:
    ordered = in_one_partition(*[LEAST_FILE] * 8, written=False)
    due = layout_of_files([*ordered, *in_one_partition(LEAST_FILE, LEAST_FILE)], SILVER)
    assert (due.written_share, due.rewrite(ordered=True)) == (0.2, Rewrite.Z_ORDER)
    assert due.rewrite(ordered=False) is Rewrite.NONE, "a table without zorder_by has no order to keep"
    soon = layout_of_files([*ordered, *in_one_partition(LEAST_FILE)], SILVER)
    assert soon.rewrite(ordered=True) is Rewrite.NONE
    few = layout_of_files([*ordered * 12, *in_one_partition(*[MIB] * LEAST_SMALL_FILES)], SILVER)
    assert few.rewrite(ordered=True) is Rewrite.BIN_PACK
    assert layout_of_files(in_one_partition(2 * LEAST_FILE - 1), SILVER).written_share == 0, "the only file is in order"
    assert layout_of_files(in_one_partition(2 * LEAST_FILE), SILVER).rewrite(ordered=True) is Rewrite.Z_ORDER
    for is_ordered in (True, False):
        assert layout_of_files([], SILVER).rewrite(ordered=is_ordered) is Rewrite.NONE


def test_a_writer_of_files_goes_by_the_bytes_of_stored_rows_or_else_by_a_byte_for_each_value() -> None:
    gold, large = gold_spec(), 10 * LEAST_COMPUTED_FILE
    assert rows_per_file(gold, large, large // 8, columns=5, expected_bytes=0) == LEAST_COMPUTED_FILE // 8
    assert rows_per_file(gold, large, 1, columns=5, expected_bytes=0) == 1
    for stored in (0, 3_000):
        assert rows_per_file(gold, stored, stored, columns=4, expected_bytes=9) == LEAST_COMPUTED_FILE // 4
        assert rows_per_file(gold, stored, stored, 4, 2_000 * LEAST_COMPUTED_FILE) == 2 * LEAST_COMPUTED_FILE // 4

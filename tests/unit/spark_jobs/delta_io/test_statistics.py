"""Which columns have statistics."""

from __future__ import annotations

from spark_jobs.delta_io.statistics import MAX_COLUMNS, statistics_of

COLUMNS = {f"c{number}": "bigint" for number in range(40)} | {"tags": "array<string>", "is_new": "boolean"}


def named(*wanted: str, partitioned_by: tuple[str, ...] = ()) -> list[str]:
    (names,) = statistics_of(wanted, COLUMNS, partitioned_by).values()
    return names.split(",")


def test_they_are_named_in_the_order_of_what_is_wanted_most_each_once() -> None:
    assert named("c3", "c1", "c3") == ["c3", "c1"]


def test_partitions_and_types_without_an_order_have_none() -> None:
    assert named("c1", "tags", "is_new", "c2", partitioned_by=("c2",)) == ["c1"]


def test_of_a_wide_table_the_most_wanted_have_them() -> None:
    found = named("c39", *COLUMNS)
    assert len(found) == MAX_COLUMNS
    assert found[0] == "c39"

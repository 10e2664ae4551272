"""The cost of both ways of a refresh: the cheaper one is chosen, and small tables are left alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from include.control.planning.refresh_cost import MOST_LISTED, SMALL, RefreshCost, cost_before_tracing
from include.paths import LakehousePaths
from tests.support.documents.specs import silver_spec
from tests.support.ledger.delta_tables import create_table, load_batch

MB = 1_000_000
LARGE = RefreshCost(sources=400 * MB, table=2 * MB, changes=MB)


def test_the_cheaper_of_touched_values_and_all_groups_is_chosen() -> None:
    assert not LARGE.is_whole_cheaper
    assert not replace(LARGE, read=100 * MB, rewritten=MB, values=30).is_whole_cheaper
    assert replace(LARGE, read=400 * MB, rewritten=2 * MB, values=300).is_whole_cheaper
    assert replace(LARGE, changes=300 * MB).is_whole_cheaper, "before anything else is known"
    assert replace(LARGE, sources=20 * MB, changes=1).is_whole_cheaper, "to trace a change costs more"
    assert not replace(LARGE, sources=60 * MB).is_whole_cheaper
    small = RefreshCost(sources=SMALL - 1, table=0, changes=SMALL, read=SMALL - 1, values=9)
    assert (small.is_small, small.is_whole_cheaper) == (True, False), "a small table is left alone"


def test_so_many_values_are_listed_as_cost_less_than_all_groups() -> None:
    cost = replace(LARGE, sources=60 * MB)
    assert not replace(cost, values=cost.most_values).is_whole_cheaper
    assert replace(cost, values=cost.most_values + 1).is_whole_cheaper
    for sources in (MB, 10_000 * MB):
        assert replace(cost, sources=sources, table=0).most_values == MOST_LISTED


costs = st.builds(RefreshCost, *(st.integers(0, 10**12) for _ in range(6)))


@given(cost=costs, more=st.integers(1, 10**9), name=st.sampled_from(["changes", "read", "values"]))
def test_more_to_read_never_makes_touched_values_the_choice(cost: RefreshCost, more: int, name: str) -> None:
    dearer = replace(cost, **{name: getattr(cost, name) + more})
    assert dearer.is_whole_cheaper or not cost.is_whole_cheaper


def test_files_are_found_by_their_names_however_spark_writes_their_addresses() -> None:
    cost = replace(LARGE, sizes={"part-0.parquet": 5, "part 1.parquet": 7, "part-2.parquet": 11})
    read = ["file:///lake/a%20b/part-0.parquet", "s3a://lake/day=1/part%201.parquet"]
    touched = cost.of_touched(3, read, ["file:/gold/part-2.parquet", "file:/gold/unknown.parquet"])
    assert (touched.values, touched.read, touched.rewritten) == (3, 12, 11)


def test_the_log_says_how_large_tables_and_changes_are(tmp_path: Path) -> None:
    paths, spec = LakehousePaths(tmp_path), silver_spec()
    path = paths.table(spec.table)
    create_table(path, enableChangeDataFeed="true")  # type: ignore[arg-type]
    versions = [load_batch(tmp_path, spec).version for _ in range(3)]
    files = {file.name: file.stat().st_size for file in path.glob("*.parquet")}
    assert len(files) >= 3
    cost = cost_before_tracing(path, versions[0], {spec.table: (versions[0], versions[2])}, paths)
    assert cost.sizes == files
    assert cost.sources == sum(files.values())
    assert 0 < cost.table < cost.sources
    assert cost.changes == cost.sources - cost.table

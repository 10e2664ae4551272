"""A batch reads the changed versions of its sources up to the certified version or its limit, in the cheaper way."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec, parse_spec
from millrace.control.gates.gates import Gates
from millrace.control.log.batch import BatchSources, Stream, StreamPosition, Winner
from millrace.control.log.stored_tables import TABLE_ID
from millrace.control.planning.refresh_cost import MOST_LISTED, SMALL, RefreshCost, cost_before_tracing
from millrace.control.planning.source_ranges import (
    certified_sources,
    changed_ranges,
    limit_batch,
    pin_sources,
    require_same_sources,
    why_whole,
)
from millrace.errors import BadInputError, NotReadyError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import gold_spec, silver_spec
from tests.support.ledger.delta_tables import (
    clean_log,
    create_table,
    intent_of,
    judge,
    load_batch,
    optimize,
    set_property,
    sources_reading,
)
from tests.support.silver.known_customers import shop_documents

ORDERS, PLANES = silver_spec(), silver_spec(table="silver.planes")
GOLD = gold_spec(
    sources={
        "o": {"table": "silver.orders"},
        "p": {"table": "silver.planes", "join": "left", "on": "o.order_id = p.order_id"},
    }
)


def certify(paths: LakehousePaths, *specs: AnySpec) -> list[int]:
    """Commit and certify a new version of each table."""
    versions = [load_batch(paths.root, spec).version for spec in specs]
    for spec, version in zip(specs, versions, strict=True):
        judge(paths.root, spec, version)
    return versions


def consumed(paths: LakehousePaths, **ranges: int) -> StreamPosition:
    """Return a position whose last batch read these sources up to these versions."""
    sources = sources_reading(paths.root, **{f"silver__{name}": (None, version) for name, version in ranges.items()})
    winner = Winner(intent_of("id", sources=sources), 1)
    return StreamPosition("id", version=1, last=winner)


def new_ranges(
    spec: GoldSpec, paths: LakehousePaths, gates: Gates, position: StreamPosition | None
) -> dict[str, tuple[int | None, int]]:
    return changed_ranges(spec, pin_sources(spec, paths, gates, position), paths)


def test_only_certified_changes_of_data_are_read_or_what_may_have_changed(paths: LakehousePaths, gates: Gates) -> None:
    missing = r"^gold\.revenue_daily: silver\.orders has no .* built; silver\.planes has no certified"
    with pytest.raises(NotReadyError, match=missing):
        new_ranges(GOLD, paths, gates, None)
    certify(paths, ORDERS, PLANES)
    orders, planes = certify(paths, ORDERS, PLANES)
    load_batch(paths.root, ORDERS)
    assert certified_sources(GOLD, gates, paths) == {"silver.orders": orders, "silver.planes": planes}
    whole = {"silver.orders": (None, orders), "silver.planes": (None, planes)}
    assert new_ranges(GOLD, paths, gates, None) == whole, "it has read nothing yet"
    assert new_ranges(GOLD, paths, gates, StreamPosition("id", version=0)) == whole
    assert new_ranges(GOLD, paths, gates, consumed(paths, orders=orders)) == {"silver.planes": (None, planes)}
    judge(paths.root, ORDERS, orders + 1)
    orders += 1
    position = consumed(paths, orders=orders, planes=planes)
    assert new_ranges(GOLD, paths, gates, position) == {}
    optimize(paths.table("silver.orders"))
    set_property(paths.table("silver.planes"))
    assert gates.certified("silver.orders") == orders + 1
    assert new_ranges(GOLD, paths, gates, position) == {}
    refused = load_batch(paths.root, ORDERS).version
    judge(paths.root, ORDERS, refused, passed=False)
    assert new_ranges(GOLD, paths, gates, position) == {}
    assert new_ranges(GOLD, paths, gates, consumed(paths, orders=refused, planes=planes)) == {}, "it has read beyond"
    (newest,) = certify(paths, ORDERS)
    assert new_ranges(GOLD, paths, gates, position) == {"silver.orders": (orders, newest)}
    clean_log(paths.table("silver.orders"), below=newest)
    assert new_ranges(GOLD, paths, gates, position) == {"silver.orders": (orders, newest)}, "its log was cleaned up"
    shutil.rmtree(paths.table("silver.orders"))
    (rebuilt,) = certify(paths, ORDERS)
    assert rebuilt < orders
    assert new_ranges(GOLD, paths, gates, position) == {"silver.orders": (None, rebuilt)}, "it is another table"


def test_a_batch_reads_what_it_has_pinned_from_no_other_table(paths: LakehousePaths, gates: Gates) -> None:
    _, customers, bronze, orders = (parse_spec({**document, "domain": "shop"}) for document in shop_documents())
    assert isinstance(orders, SilverSpec)
    [read] = certify(paths, bronze)
    with pytest.raises(NotReadyError, match=r"^silver\.orders: silver\.customers has no certified version"):
        pin_sources(orders, paths, gates, None)
    certify(paths, customers)
    [newest] = certify(paths, customers)
    load_batch(paths.root, customers)
    pinned = pin_sources(orders, paths, gates, None)
    assert pinned.ranges == {"bronze.orders": (None, read)}
    assert {table: pin.version for table, pin in pinned.references.items()} == {"silver.customers": newest}
    assert pinned.at_same_position().references == {}
    require_same_sources(pinned, paths)
    for name, spec in (("customers", customers), ("orders", bronze)):
        table = paths.table(spec.table)
        shutil.rmtree(table)
        with pytest.raises(BadInputError, match=rf"\.{name} at .* is gone\n"):
            require_same_sources(pinned, paths)
        certify(paths, spec)
        with pytest.raises(BadInputError, match=rf"\.{name} at .* is not the table that this batch has read"):
            require_same_sources(pinned, paths)


def test_a_rebuilt_source_still_has_the_pinned_version(paths: LakehousePaths, gates: Gates) -> None:
    certify(paths, ORDERS, PLANES)
    pinned = pin_sources(GOLD, paths, gates, None)
    orders = DeltaTable(str(paths.table("silver.orders")))
    switch = intent_of("the id of the new one", stream=Stream("silver.orders"), sources=BatchSources(rebuild="r1"))
    orders.alter.set_table_properties(
        {TABLE_ID: switch.table_id},
        raise_if_not_exists=False,
        commit_properties=CommitProperties(custom_metadata={"userMetadata": switch.user_metadata()}),
    )
    require_same_sources(pinned, paths)
    assert gates.certified("silver.orders") is None, "what was certified was the table of before"
    later = pinned.model_copy(update={"ranges": {**pinned.ranges, "silver.orders": (None, orders.version() + 1)}})
    with pytest.raises(BadInputError, match="is not the table that this batch has read"):
        require_same_sources(later, paths)


def test_it_is_said_why_the_changes_of_a_source_cannot_be_traced(paths: LakehousePaths) -> None:
    create_table(paths.table("silver.orders"))  # type: ignore[arg-type]
    certify(paths, ORDERS, PLANES)
    planes, orders = (0, 1), (0, 1)
    assert why_whole({"silver.orders": (None, 1), "silver.planes": (None, 1)}, paths) == ""
    assert why_whole({"silver.orders": (1, 1), "silver.planes": planes}, paths) == ""
    unread = why_whole({"silver.orders": orders, "silver.planes": (None, 1)}, paths)
    assert unread == "no batch has read silver.planes before"
    assert why_whole({"silver.orders": orders, "silver.planes": planes}, paths) == "", "the files can be compared"
    clean_log(paths.table("silver.orders"), below=1)
    without_feed = why_whole({"silver.orders": orders, "silver.planes": planes}, paths)
    assert without_feed == "the change feed of silver.orders lacks versions, and their files cannot be compared"


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


@settings(max_examples=20)
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


def test_files_are_found_by_their_names_however_spark_writes_their_addresses() -> None:
    cost = replace(LARGE, sizes={"part-0.parquet": 5, "part 1.parquet": 7, "part-2.parquet": 11})
    read = ["file:///lake/a%20b/part-0.parquet", "s3a://lake/day=1/part%201.parquet"]
    touched = cost.of_values(3).of_files(read, ["file:/gold/part-2.parquet", "file:/gold/unknown.parquet"])
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

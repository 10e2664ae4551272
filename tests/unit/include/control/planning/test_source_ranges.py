"""A batch reads the changed versions of its sources after the last batch, up to the certified version."""

from __future__ import annotations

import shutil

import pytest
from deltalake import CommitProperties, DeltaTable

from include.contracts.spec.table_spec import AnySpec, GoldSpec, SilverSpec, parse_spec
from include.control.gates.gates import Gates
from include.control.log.batch import BatchSources, Stream, StreamPosition, Winner
from include.control.log.stored_tables import TABLE_ID
from include.control.planning.source_ranges import (
    certified_sources,
    changed_ranges,
    pin_sources,
    require_same_sources,
    why_whole,
)
from include.errors import BadInputError, NotReadyError
from include.paths import LakehousePaths
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


def test_the_error_names_all_missing_sources(paths: LakehousePaths, gates: Gates) -> None:
    with pytest.raises(
        NotReadyError, match=r"^gold\.revenue_daily: silver\.orders has no .* built; silver\.planes has no certified"
    ):
        certified_sources(GOLD, gates, paths)
    certify(paths, ORDERS)
    with pytest.raises(NotReadyError, match=r"^gold\.revenue_daily: silver\.planes has no certified"):
        new_ranges(GOLD, paths, gates, None)


def test_what_a_table_has_not_read_yet_is_read_from_the_beginning(paths: LakehousePaths, gates: Gates) -> None:
    orders, planes = certify(paths, ORDERS, PLANES)
    load_batch(paths.root, ORDERS)
    assert certified_sources(GOLD, gates, paths) == {"silver.orders": orders, "silver.planes": planes}
    expected = {"silver.orders": (None, orders), "silver.planes": (None, planes)}
    assert new_ranges(GOLD, paths, gates, None) == expected
    assert new_ranges(GOLD, paths, gates, StreamPosition("id", version=0)) == expected
    assert new_ranges(GOLD, paths, gates, consumed(paths, orders=orders)) == {"silver.planes": (None, planes)}


def test_only_certified_changes_of_data_are_read_or_what_may_have_changed(paths: LakehousePaths, gates: Gates) -> None:
    certify(paths, ORDERS, PLANES)
    orders, planes = certify(paths, ORDERS, PLANES)
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
    create_table(paths.table("silver.planes"), enableChangeDataFeed="true")  # type: ignore[arg-type]
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

"""One silver table from two bronze tables with other names of their own, on real Delta."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from embedded.spark.server import SparkServer
from millrace.catalog import load_catalog
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.planner import Planner, stream_position
from millrace.errors import Outcome
from millrace.settings import Settings
from tests.support.given import given
from tests.support.lakehouse import Lakehouse
from tests.support.ledger.delta_tables import day
from tests.support.silver.two_shops import BRANCH, FEEDS, SILVER, WEB, ShopEvent, TwoShops, two_shops

SEEN = ("refused", "replaced", "restored", "deleted", Outcome.COMMITTED)
"""What a random sequence of steps must have had to prove anything."""


@pytest.fixture
def shops(tmp_path: Path, server: SparkServer) -> Lakehouse:
    """An empty lakehouse of two shops."""
    lakehouse = Lakehouse(tmp_path)
    lakehouse.specs(*two_shops())
    return lakehouse


def run_day(shops: Lakehouse, number: int, *events: ShopEvent) -> None:
    """Merge the events of both sources."""
    for source in FEEDS:
        given(shops, source, [event.row for event in events if event.source == source], number, "a.json")
    shops.run_well(number, SILVER)


@pytest.mark.slow
def test_any_order_of_deliveries_and_runs_ends_in_the_last_state_of_each_key_by_the_priority_of_its_source(
    shops: Lakehouse,
) -> None:
    """The tests of concurrent sources do the same without a priority."""
    shops.specs(*two_shops(source_priority="after_sequence", sequence_by=["event_at"]))
    run = TwoShops(shops, Random(4), "after_sequence")
    for _ in range(4):
        run.deliver()
    for number in range(60):
        run.chance.choices([run.deliver, run.replace, run.load, run.merge, run.restore], [2, 1, 4, 4, 1])[0]()
        if number >= 16 and all(run.done[step] for step in SEEN):
            break
    run.load_all()
    run.merge(reprocess=True)
    assert {row[-1] for row in run.right_rows()} == {WEB, BRANCH}
    assert all(run.done[step] for step in SEEN), run.done
    assert shops.run(SILVER).outcome is Outcome.NO_OP


def test_a_batch_reads_each_source_from_where_the_last_one_ended_and_a_replaced_file_asks_before_it_deletes_many_keys(
    shops: Lakehouse,
) -> None:
    *bronze, both = two_shops(max_deleted_percent=10)
    shops.specs({**both, "sources": both["sources"][:1]})
    of_branch = [ShopEvent(BRANCH, key, key, 1, key) for key in (0, 1, 2, 6)]
    of_web = [ShopEvent(WEB, 2, 7, 0, 8), ShopEvent(WEB, 4, 4, 1, 9)]
    for source, events in ((WEB, of_web), (BRANCH, of_branch)):
        given(shops, source, [event.row for event in events], 1, "a.json")
    given(shops, SILVER, [{**event.row, "shop": WEB} for event in of_web])
    shops.specs(*bronze, both)
    settings = Settings(root=shops.paths.root, landing=f"{shops.folder / 'landing'}", tables=shops.folder / "tables")
    planner, catalog = Planner(load_catalog(settings.tables), settings), load_catalog(settings.tables)
    advice = planner.advise(catalog.spec(SILVER), day(1))
    assert (advice.sources, advice.nothing_new) == ({BRANCH: (None, 1)}, False)

    run_day(shops, 2, ShopEvent(WEB, 3, 3, 1, 10), ShopEvent(BRANCH, 4, 9, 0, 11))

    position = stream_position(catalog.spec(SILVER), shops.paths, planner.ops.ledger)
    assert position
    assert position.last_sources.ranges == {WEB: (1, 2), BRANCH: (None, 2)}
    rows = [("o0", 0, BRANCH), ("o1", 1, BRANCH), ("o2", 2, BRANCH), ("o3", 3, WEB), ("o4", 4, WEB), ("o6", 6, BRANCH)]
    assert shops.rows(SILVER, "order_id", "amount", "shop") == rows

    shops.deliver(1, "a.json", [of_branch[0].row], feed=FEEDS[BRANCH])
    shops.run(BRANCH)
    given(shops, WEB, [ShopEvent(WEB, 5, 5, 1, 12).row], 2)
    refused = shops.run(SILVER)
    assert refused.outcome is Outcome.DELETES_REFUSED, refused.message
    assert f"{BRANCH}: branch_orders/date=2013-01-01/a.json was delivered again without them" in refused.message
    [asked] = OpsTables(shops.paths).deletes.pending_deletes(SILVER)
    assert (asked.source, asked.source_version, asked.keys) == (BRANCH, 3, 2)
    assert shops.run(SILVER, allow_deletes="ann").exit_code == 0
    rows = [("o0", 0, BRANCH), ("o2", 7, WEB), ("o3", 3, WEB), ("o4", 4, WEB), ("o5", 5, WEB)]
    assert shops.rows(SILVER, "order_id", "amount", "shop") == rows


def test_a_refused_row_is_fixed_and_replayed_as_its_source_delivers_it(shops: Lakehouse) -> None:
    run_day(shops, 1, ShopEvent(WEB, 1, -1, 1, 1), ShopEvent(BRANCH, 2, -2, 1, 2), ShopEvent(WEB, 2, 7, 0, 3))
    waiting = {row.source.partition(": ")[0]: row for row in shops.waiting(SILVER)}
    assert waiting.keys() == {WEB, BRANCH}
    replayed = shops.replay(SILVER, assign={"cents": "-3 * cents"}, why="sign", rows={"ids": [waiting[BRANCH].id]})

    assert (replayed.rows.read, replayed.rows.applied) == (1, 1), replayed.message
    assert shops.rows(SILVER, "order_id", "amount", "shop") == [("o2", 6, BRANCH)]
    shops.specs(*two_shops(expectations=[]))
    shops.run_well(1, SILVER, reprocess=True)
    assert shops.rows(SILVER, "order_id", "amount", "shop") == [("o1", -1, WEB), ("o2", 6, BRANCH)]


@pytest.mark.slow
def test_another_priority_of_the_sources_stops_runs_until_a_rebuild_has_ordered_all_rows_by_it(
    shops: Lakehouse,
) -> None:
    events = ShopEvent(WEB, 1, 1, 1, 1), ShopEvent(BRANCH, 1, 2, 2, 2), ShopEvent(BRANCH, 3, 3, 1, 3)
    run_day(shops, 1, *events)
    assert shops.rows(SILVER, "order_id", "amount") == [("o1", 2), ("o3", 3)]
    shops.specs(*two_shops(source_priority="before_sequence"))
    misfit = shops.run(SILVER)
    assert "source_priority: now before_sequence" in misfit.message
    assert shops.rebuild(SILVER).exit_code == 0
    assert shops.rows(SILVER, "order_id", "amount") == [("o1", 1), ("o3", 3)]
    given(shops, BRANCH, [ShopEvent(BRANCH, 1, None, 9, 4).row], 2)
    assert shops.run(SILVER, 2).exit_code == 0
    assert shops.rows(SILVER, "order_id", "amount") == [("o1", 1), ("o3", 3)], "a delete of the second source is less"

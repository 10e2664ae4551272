"""The plan of a silver or gold table: the versions of its sources that a run would read."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.contracts.spec.table_spec import AnySpec
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact
from include.control.log.stored_tables import open_table
from include.errors import NotReadyError
from include.paths import LakehousePaths
from tests.support.documents.specs import gold_query_spec, gold_spec, silver_spec
from tests.support.ledger.delta_tables import create_table, day, judge, load_batch, optimize, sources_reading
from tests.support.ledger.planning import BRONZE, SILVER, CheckedPlanner, certify_bronze


def consume(root: Path, spec: AnySpec, **ranges: tuple[int | None, int]) -> int:
    """Commit a complete batch that read these ranges, keyed by `layer__name`, and return its version."""
    version = load_batch(root, spec, sources=sources_reading(root, **ranges)).version
    judge(root, spec, version)
    return version


def test_a_source_without_a_certified_version_is_not_ready(root: Path, advise: CheckedPlanner) -> None:
    with pytest.raises(
        NotReadyError, match=r"silver\.orders: bronze\.orders has no certified version: it was never built\n"
    ):
        advise(SILVER)
    version = load_batch(root, BRONZE).version
    with pytest.raises(NotReadyError, match="its gate has not checked it"):
        advise(SILVER)
    table_id, ledger = open_table(LakehousePaths(root).table(BRONZE.table)).metadata().id, Ledger(LakehousePaths(root))
    broken = FileFact(path="orders/b.json", size=1, mtime_ns=1, checksum="b", defect="not a sound gzip file")
    ledger.record_files(FileEvent.FAILED, BRONZE.table, str(table_id), day(), [broken])
    with pytest.raises(NotReadyError, match=r"cannot load orders/b\.json: not a sound gzip file"):
        advise(SILVER)
    judge(root, BRONZE, version, passed=False)
    with pytest.raises(NotReadyError, match=f"version {version} was refused"):
        advise(SILVER)


def test_a_batch_reads_only_certified_versions_after_those_of_the_last_batch(
    root: Path, advise: CheckedPlanner
) -> None:
    first = certify_bronze(root)
    advice = advise(SILVER)
    assert (advice.nothing_new, advice.sources) == (False, {"bronze.orders": (None, first)})
    assert advice.message == f"bronze.orders versions 0 to {first}"
    assert advice.batch_seq is None
    consume(root, SILVER, bronze__orders=(None, first))
    nothing_new = (True, "nothing new in bronze.orders")
    assert (advise(SILVER).nothing_new, advise(SILVER).message) == nothing_new
    judge(root, BRONZE, load_batch(root, BRONZE).version, passed=False)
    assert (advise(SILVER).nothing_new, advise(SILVER).message) == nothing_new
    newest = certify_bronze(root)
    assert advise(SILVER).sources == {"bronze.orders": (first, newest)}
    assert advise(SILVER).message == f"bronze.orders versions {first + 1} to {newest}"
    consume(root, SILVER, bronze__orders=(first, newest))
    optimize(LakehousePaths(root).table("bronze.orders"))
    assert (advise(SILVER).nothing_new, advise(SILVER).message) == nothing_new
    advice = advise(SILVER, reprocess=True)
    assert (advice.nothing_new, advice.message) == (False, "reads the interval's rows again")


def test_a_plan_says_how_the_table_of_a_query_is_refreshed(root: Path, advise: CheckedPlanner) -> None:
    gold = gold_query_spec(query="SELECT day, count(*) AS n FROM o GROUP BY day")
    create_table(root / "silver" / "orders", enableChangeDataFeed="true")
    first = consume(root, SILVER)
    assert advise(gold).message == f"silver.orders versions 0 to {first}"
    consume(root, gold, silver__orders=(None, first))
    assert advise(gold).message == "nothing new in silver.orders"
    newest = consume(root, SILVER)
    assert advise(gold).message == f"silver.orders version {newest}; refreshed by day, traced through o: day"


def test_each_source_of_a_gold_table_has_its_own_range(root: Path, advise: CheckedPlanner) -> None:
    planes = silver_spec(table="silver.planes")
    gold = gold_spec(
        sources={
            "o": {"table": "silver.orders"},
            "p": {"table": "silver.planes", "join": "left", "on": "o.order_id = p.order_id"},
        }
    )
    orders_at, planes_at = (consume(root, spec) for spec in (SILVER, planes))
    assert advise(gold).sources == {"silver.orders": (None, orders_at), "silver.planes": (None, planes_at)}
    consume(root, gold, silver__orders=(None, orders_at), silver__planes=(None, planes_at))
    assert advise(gold).message == "nothing new in silver.orders, silver.planes"
    newest = consume(root, planes)
    assert advise(gold).sources == {"silver.planes": (planes_at, newest)}

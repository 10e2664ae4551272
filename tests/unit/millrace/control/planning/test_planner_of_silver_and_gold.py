"""The plan of a silver or gold table: the versions of its sources that a run would read, in all of its streams."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from millrace.contracts.spec.table_spec import AnySpec, parse_spec
from millrace.control.changes.table_diff import table_diff
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import FileFact, Stream
from millrace.control.maintenance.retention import CERTIFIED_READERS, readers_of
from millrace.control.ops_tables import OpsTables
from millrace.control.planning.planner import Planner
from millrace.control.planning.stream_positions import stream_position
from millrace.errors import NotReadyError
from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks
from millrace.paths import LakehousePaths
from millrace.settings import Settings
from tests.support.documents.specs import (
    bronze_document,
    bronze_spec,
    catalog_of,
    gold_query_spec,
    silver_document,
    write_specs,
)
from tests.support.ledger.delta_tables import create_table, day, judge, load_batch, optimize, sources_reading
from tests.support.ledger.planning import BRONZE, SILVER, CheckedPlanner


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
    broken = FileFact(path="orders/b.json", size=1, mtime_ns=1, checksum="b", defect="not a sound gzip file")
    paths = LakehousePaths(root)
    bronze_id = table_id(paths.table(BRONZE.table))
    Ledger(paths).record_files(FileEvent.FAILED, BRONZE.table, bronze_id, day(), [broken])
    with pytest.raises(NotReadyError, match=r"cannot load orders/b\.json: not a sound gzip file"):
        advise(SILVER)
    judge(root, BRONZE, version, passed=False)
    with pytest.raises(NotReadyError, match=f"version {version} was refused"):
        advise(SILVER)


def test_a_batch_reads_only_certified_versions_after_those_of_the_last_batch(
    root: Path, advise: CheckedPlanner
) -> None:
    first = consume(root, BRONZE)
    advice = advise(SILVER)
    assert (advice.nothing_new, advice.sources) == (False, {"bronze.orders": (None, first)})
    assert advice.message == f"bronze.orders versions 0 to {first}"
    assert advice.batch_seq is None
    consume(root, SILVER, bronze__orders=(None, first))
    nothing_new = (True, "nothing new in bronze.orders")
    assert (advise(SILVER).nothing_new, advise(SILVER).message) == nothing_new
    judge(root, BRONZE, load_batch(root, BRONZE).version, passed=False)
    assert (advise(SILVER).nothing_new, advise(SILVER).message) == nothing_new
    newest = consume(root, BRONZE)
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


EU, US = bronze_spec(table="bronze.eu"), bronze_spec(table="bronze.us")
DOCUMENT = silver_document(
    sources=[{"table": "bronze.eu", "partitions": ["de", "fr"]}, {"table": "bronze.us", "partitions": ["us"]}],
    keys=["country", "order_id"],
    columns={"country": {}, **silver_document()["columns"]},
    partitioned_by=["country"],
    concurrent_by="country",
)
del DOCUMENT["source"]
BY_COUNTRY = parse_spec(DOCUMENT)
OF_EU, OF_US = Stream(BY_COUNTRY.table, "bronze.eu"), Stream(BY_COUNTRY.table, "bronze.us")


@pytest.fixture
def streams(tmp_path: Path) -> Path:
    """Both sources have two certified versions; silver has merged both of one, and then the first of the other."""
    write_specs(tmp_path / "specs", bronze_document("bronze.eu"), bronze_document("bronze.us"), DOCUMENT)
    for spec in (EU, US, EU, US):
        judge(tmp_path, spec, load_batch(tmp_path, spec).version)
    load_batch(tmp_path, BY_COUNTRY, sources=sources_reading(tmp_path, bronze__eu=(None, 2)), stream=OF_EU)
    load_batch(tmp_path, BY_COUNTRY, sources=sources_reading(tmp_path, bronze__us=(None, 1)), stream=OF_US)
    return tmp_path


def test_the_position_of_the_table_has_the_sources_of_all_streams_and_each_source_knows_its_readers(
    streams: Path,
) -> None:
    paths = LakehousePaths(streams)
    position = stream_position(BY_COUNTRY, paths, Ledger(paths))
    assert position is not None
    assert position.last is not None
    assert position.last.intent.stream == OF_US.name
    assert position.last_sources.ranges == {"bronze.eu": (None, 2), "bronze.us": (None, 1)}
    reader = LakehouseReader(paths, streams / "specs")
    for source, version in ((EU, 2), (US, 1)):
        found = readers_of(source, catalog_of(EU, US, BY_COUNTRY), OpsTables(paths))
        needed = [(CERTIFIED_READERS, 2), (BY_COUNTRY.table, version)]
        assert [(reader.name, reader.version) for reader in found] == needed, "what VACUUM keeps"
        overview = reader.read_table(source.table, datetime.now(UTC), no_failed_tasks)
        assert overview is not None
        assert [(reader.name, reader.version) for reader in overview.readers] == needed, "what pages show"


def test_a_run_reads_what_is_new_in_each_stream_and_completes_each(streams: Path) -> None:
    settings = Settings(root=streams, landing=str(streams / "landing"), tables=streams / "specs")
    planner = Planner(catalog_of(EU, US, BY_COUNTRY), settings)
    assert planner.advise(BY_COUNTRY, day()).sources == {"bronze.us": (1, 2)}
    read = load_batch(streams, BY_COUNTRY, sources=sources_reading(streams, bronze__us=(1, 2)), stream=OF_US)
    judge(streams, BY_COUNTRY, read.version)
    assert planner.advise(BY_COUNTRY, day()).nothing_new
    unclosed = sources_reading(streams, bronze__eu=(2, 2))
    load_batch(streams, BY_COUNTRY, sources=unclosed, stream=OF_EU, closed=False)
    newest = load_batch(streams, BY_COUNTRY, sources=sources_reading(streams, bronze__us=(2, 2)), stream=OF_US)
    judge(streams, BY_COUNTRY, newest.version)
    advice = Planner(catalog_of(EU, US, BY_COUNTRY), settings).advise(BY_COUNTRY, day())
    assert not advice.nothing_new, "the last batch of the other stream is not closed"


def test_an_interval_that_was_read_again_from_one_source_follows_the_old_spec_in_the_other_one(streams: Path) -> None:
    ops = OpsTables(LakehousePaths(streams))
    changed = parse_spec({**DOCUMENT, "columns": {**DOCUMENT["columns"], "amount": {"from": "2 * amount"}}})
    for spec in (BY_COUNTRY, changed):
        ops.specs.record(spec, table_id(ops.paths.table(BY_COUNTRY.table)))
    load_batch(streams, BY_COUNTRY, sources=sources_reading(streams, bronze__us=(1, 2)), stream=OF_US)
    again = sources_reading(streams, bronze__eu=(2, 2)).model_copy(update={"reprocess": True})

    last = load_batch(streams, changed, sources=again, stream=OF_EU)

    diff = table_diff(changed, last, ops)
    assert last.intent.interval_start == day(2).start
    assert (diff.outdated, diff.rows) == ((day(1).start, day(2).start), 3), "both days of bronze.us, one of bronze.eu"

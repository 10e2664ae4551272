"""A silver table whose sources have streams of their own is one table for the planner, for VACUUM and for pages."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from include.contracts.spec.table_spec import parse_spec
from include.control.changes.table_diff import table_diff
from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import table_id
from include.control.log.batch import Stream
from include.control.maintenance.retention import CERTIFIED_READERS, readers_of
from include.control.ops_tables import OpsTables
from include.control.planning.planner import Planner
from include.control.planning.stream_positions import stream_position
from include.overview.lakehouse import LakehouseReader, no_failed_tasks
from include.paths import LakehousePaths
from include.settings import Settings
from tests.support.documents.specs import bronze_document, bronze_spec, catalog_of, silver_document, write_specs
from tests.support.ledger.delta_tables import day, judge, load_batch, sources_reading

EU, US = bronze_spec(table="bronze.eu"), bronze_spec(table="bronze.us")
DOCUMENT = silver_document(
    sources=[{"table": "bronze.eu", "partitions": ["de", "fr"]}, {"table": "bronze.us", "partitions": ["us"]}],
    keys=["country", "order_id"],
    columns={"country": {}, **silver_document()["columns"]},
    partitioned_by=["country"],
    concurrent_by="country",
)
del DOCUMENT["source"]
SILVER = parse_spec(DOCUMENT)
OF_EU, OF_US = Stream(SILVER.table, "bronze.eu"), Stream(SILVER.table, "bronze.us")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Both sources have two certified versions; silver has merged both of one, and then the first of the other."""
    write_specs(tmp_path / "specs", bronze_document("bronze.eu"), bronze_document("bronze.us"), DOCUMENT)
    for spec in (EU, US, EU, US):
        judge(tmp_path, spec, load_batch(tmp_path, spec).version)
    load_batch(tmp_path, SILVER, sources=sources_reading(tmp_path, bronze__eu=(None, 2)), stream=OF_EU)
    load_batch(tmp_path, SILVER, sources=sources_reading(tmp_path, bronze__us=(None, 1)), stream=OF_US)
    return tmp_path


def test_the_position_of_the_table_has_the_sources_of_all_streams_and_each_source_knows_its_readers(root: Path) -> None:
    paths = LakehousePaths(root)
    position = stream_position(SILVER, paths, Ledger(paths))
    assert position is not None
    assert position.last is not None
    assert position.last.intent.stream == OF_US.name
    assert position.last_sources.ranges == {"bronze.eu": (None, 2), "bronze.us": (None, 1)}
    reader = LakehouseReader(paths, root / "specs")
    for source, version in ((EU, 2), (US, 1)):
        found = readers_of(source, catalog_of(EU, US, SILVER), paths)
        needed = [(CERTIFIED_READERS, 2), (SILVER.table, version)]
        assert [(reader.name, reader.version) for reader in found] == needed, "what VACUUM keeps"
        overview = reader.read_table(source.table, datetime.now(UTC), no_failed_tasks)
        assert overview is not None
        assert [(reader.name, reader.version) for reader in overview.readers] == needed, "what pages show"


def test_a_run_reads_what_is_new_in_each_stream_and_completes_each(root: Path) -> None:
    settings = Settings(root=root, landing=str(root / "landing"), tables=root / "specs")
    planner = Planner(catalog_of(EU, US, SILVER), settings)
    assert planner.advise(SILVER, day()).sources == {"bronze.us": (1, 2)}
    read = load_batch(root, SILVER, sources=sources_reading(root, bronze__us=(1, 2)), stream=OF_US)
    judge(root, SILVER, read.version)
    assert planner.advise(SILVER, day()).nothing_new
    unclosed = sources_reading(root, bronze__eu=(2, 2))
    load_batch(root, SILVER, sources=unclosed, stream=OF_EU, closed=False)
    newest = load_batch(root, SILVER, sources=sources_reading(root, bronze__us=(2, 2)), stream=OF_US)
    judge(root, SILVER, newest.version)
    advice = Planner(catalog_of(EU, US, SILVER), settings).advise(SILVER, day())
    assert not advice.nothing_new, "the last batch of the other stream is not closed"


def test_an_interval_that_was_read_again_from_one_source_follows_the_old_spec_in_the_other_one(root: Path) -> None:
    ops = OpsTables(LakehousePaths(root))
    changed = parse_spec({**DOCUMENT, "columns": {**DOCUMENT["columns"], "amount": {"from": "2 * amount"}}})
    for spec in (SILVER, changed):
        ops.specs.record(spec, table_id(ops.paths.table(SILVER.table)))
    load_batch(root, SILVER, sources=sources_reading(root, bronze__us=(1, 2)), stream=OF_US)
    again = sources_reading(root, bronze__eu=(2, 2)).model_copy(update={"reprocess": True})

    last = load_batch(root, changed, sources=again, stream=OF_EU)

    diff = table_diff(changed, last, ops)
    assert last.intent.interval_start == day(2).start
    assert (diff.outdated, diff.rows) == ((day(1).start, day(2).start), 3), "both days of bronze.us, one of bronze.eu"

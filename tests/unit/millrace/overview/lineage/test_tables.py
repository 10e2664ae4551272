"""Relatives of a table, by steps; how far a table has read a source."""

from __future__ import annotations

from millrace.control.ledger.states.streams import StreamEnd, Streams
from millrace.control.log.batch import BatchSources
from millrace.overview.lineage.tables import downstream, source_reads, upstream
from millrace.overview.tables.table_overview import TableOverview
from tests.support.documents.specs import bronze_spec, gold_spec, silver_spec
from tests.support.ledger.delta_tables import intent_of

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()


def overview(spec: object, table_id: str = "", sources: BatchSources | None = None) -> TableOverview:
    end = StreamEnd(intent=intent_of(table_id, sources=sources), version=1)
    streams = Streams(table_id=table_id, ends={"main": end}) if table_id else None
    return TableOverview(spec, streams=streams)  # type: ignore[arg-type]


TABLES = {spec.table: overview(spec) for spec in (BRONZE, SILVER, GOLD)}


def test_relatives_are_found_over_any_number_of_steps() -> None:
    above = upstream(GOLD.table, TABLES)
    assert [(each.table.table, each.steps) for each in above] == [(BRONZE.table, 2), (SILVER.table, 1)]
    below = downstream(BRONZE.table, TABLES)
    assert [(each.table.table, each.steps) for each in below] == [(SILVER.table, 1), (GOLD.table, 2)]
    assert upstream(BRONZE.table, TABLES) == downstream(GOLD.table, TABLES) == []


def test_what_was_read_of_an_earlier_table_of_the_same_name_does_not_count() -> None:
    sources = BatchSources(ranges={BRONZE.table: (None, 7)}, source_ids={BRONZE.table: "now"})
    silver = overview(SILVER, "s", sources)
    for table_id, upto in (("now", 7), ("another", None)):
        [read] = source_reads(silver, {BRONZE.table: overview(BRONZE, table_id)})
        assert (read.upto, read.certified, read.is_behind) == (upto, None, False)

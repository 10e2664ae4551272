"""The readers that still need old versions of a table, and those that may lose them soon."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from millrace.catalog import Catalog
from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import table_id
from millrace.control.log.batch import BatchSources, PinnedTable
from millrace.control.log.delta_log import read_commit
from millrace.control.maintenance.retention import Reader, readers_in_danger, readers_of, retention_of
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from millrace.specs.invalid_spec import InvalidSpec
from tests.support.documents.specs import bronze_spec, catalog_of, gold_spec, silver_document, silver_spec
from tests.support.ledger.delta_tables import clean_log, file_contents, judge, load_batch, optimize, sources_reading

BRONZE, SILVER, GOLD = bronze_spec(), silver_spec(), gold_spec()
CATALOG = catalog_of(BRONZE, SILVER, GOLD)
CERTIFIED = "readers of the certified version"
NOW = datetime(2013, 3, 1, tzinfo=UTC)


def certify(paths: LakehousePaths) -> int:
    version = load_batch(paths.root, BRONZE).version
    judge(paths.root, BRONZE, version)
    return version


def readers(paths: LakehousePaths) -> dict[str, Reader]:
    before = file_contents(paths.root)
    found = {reader.name: reader for reader in readers_of(BRONZE, CATALOG, OpsTables(paths))}
    assert file_contents(paths.root) == before
    return found


def made_at(paths: LakehousePaths, version: int) -> datetime:
    commit = read_commit(paths.table("bronze.orders"), version)
    assert commit is not None
    return commit.at


def test_the_retention_comes_from_the_spec_and_is_thirty_days_by_default() -> None:
    for text, retention in (("7 days", timedelta(days=7)), ("1 hours", timedelta(hours=1))):
        assert retention_of(bronze_spec(maintenance={"vacuum": {"retain": text}})) == retention
    assert retention_of(BRONZE) == timedelta(days=30)


def test_a_reader_outside_may_read_a_version_for_half_the_retention() -> None:
    of_table = {"retain": "30 days", "readers": {"bi extract": "15 days", "share": "12 hours"}}
    assert bronze_spec(maintenance={"vacuum": of_table}).maintenance.vacuum.readers == of_table["readers"]
    with pytest.raises(ValueError, match="'bi extract' reads a version for 15 days, which is more than half of retain"):
        bronze_spec(maintenance={"vacuum": {**of_table, "retain": "29 days"}})


def test_readers_are_behind_from_the_first_change_of_data_after_the_certified_version(paths: LakehousePaths) -> None:
    assert readers(paths) == {}
    load_batch(paths.root, BRONZE)
    assert readers(paths) == {}, "nothing is certified"
    certified = certify(paths)
    assert readers(paths) == {CERTIFIED: Reader(CERTIFIED, certified, since=None)}
    later = [load_batch(paths.root, BRONZE).version for _ in range(3)]
    assert readers(paths)[CERTIFIED] == Reader(CERTIFIED, certified, since=made_at(paths, later[0]))
    assert made_at(paths, later[0]) < made_at(paths, later[1])


def test_a_reader_whose_commit_was_cleaned_from_the_log_is_in_danger_at_once(paths: LakehousePaths) -> None:
    certified = certify(paths)
    later = [load_batch(paths.root, BRONZE).version for _ in range(3)]
    now = made_at(paths, later[-1])
    assert readers_in_danger(tuple(readers(paths).values()), timedelta(days=30), now) == ()
    clean_log(paths.table("bronze.orders"), below=later[1])
    found = readers(paths)[CERTIFIED]
    assert found == Reader(CERTIFIED, certified, since=made_at(paths, later[1]), is_logged=False), "the first left"
    assert readers_in_danger((found,), timedelta(days=30), now) == (found,)


def test_a_reader_is_not_behind_if_the_table_was_only_optimized(paths: LakehousePaths) -> None:
    certify(paths)
    consumed = certify(paths)
    load_batch(paths.root, SILVER, sources=sources_reading(paths.root, bronze__orders=(None, consumed)))
    optimized = optimize(paths.table("bronze.orders"))
    assert readers(paths) == {
        CERTIFIED: Reader(CERTIFIED, optimized, since=None),
        "silver.orders": Reader("silver.orders", consumed, since=None),
    }
    refused = InvalidSpec("silver.orders", "shop", problems=())
    found = readers_of(BRONZE, Catalog({BRONZE.table: BRONZE}, invalid={"silver.orders": refused}), OpsTables(paths))
    assert [reader.name for reader in found] == [CERTIFIED, "silver.orders"], "an invalid spec changes nothing"


def test_a_downstream_table_reads_the_version_that_its_last_batch_consumed(paths: LakehousePaths) -> None:
    first, second = certify(paths), certify(paths)
    other = silver_spec(table="silver.planes", source="bronze.planes")
    load_batch(paths.root, other, sources=sources_reading(paths.root, bronze__orders=(None, first)))
    load_batch(paths.root, SILVER)
    found = readers_of(BRONZE, catalog_of(BRONZE, SILVER, GOLD, other), OpsTables(paths))
    assert [reader.name for reader in found] == [CERTIFIED], "one names another source, one has read nothing"
    load_batch(paths.root, SILVER, sources=sources_reading(paths.root, bronze__orders=(None, first)))
    assert readers(paths)["silver.orders"] == Reader("silver.orders", first, since=made_at(paths, second))
    load_batch(paths.root, SILVER, sources=sources_reading(paths.root, bronze__orders=(first, second)))
    assert readers(paths)["silver.orders"] == Reader("silver.orders", second, since=None)


def test_a_table_whose_rows_refer_to_it_reads_the_pinned_version_until_its_batch_is_closed(
    paths: LakehousePaths,
) -> None:
    """Closing a batch after a crash judges its rows again; the next batch pins the version that is certified then."""
    pinned, later = certify(paths), certify(paths)
    rule = {"column": "customer_id", "other_table": "bronze.orders", "other_column": "order_id"}
    referring = silver_spec(
        table="silver.returns",
        source="bronze.returns",
        columns={**silver_document()["columns"], "customer_id": {"type": "string"}},
        expectations=[{"expect_column_values_to_exist_in_other_table": rule, "action": "quarantine"}],
    )
    table = PinnedTable(table_id=table_id(paths.table("bronze.orders")), version=pinned)
    sources = BatchSources(references={"bronze.orders": table})
    winner = load_batch(paths.root, referring, sources=sources, closed=False)

    def found() -> dict[str, Reader]:
        return {reader.name: reader for reader in readers_of(BRONZE, catalog_of(BRONZE, referring), OpsTables(paths))}

    assert found()["silver.returns"] == Reader("silver.returns", pinned, since=made_at(paths, later))
    Ledger(paths).record_closed(winner, RowCounts(read=1, applied=1, inserted=1))
    assert set(found()) == {CERTIFIED}


def test_a_reader_is_in_danger_after_half_the_retention() -> None:
    def reader(days: float | None) -> Reader:
        return Reader(f"{days} days", 1, since=None if days is None else NOW - timedelta(days=days))

    found = readers_in_danger(tuple(map(reader, (None, 0, 14.9, 15, 15.1, 400))), timedelta(days=30), NOW)
    assert [one.name for one in found] == ["15.1 days", "400 days"]
    assert readers_in_danger((), timedelta(days=30), NOW) == ()

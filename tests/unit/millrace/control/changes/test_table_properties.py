"""The properties that a spec gives its table, and how those of a table differ from them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable

from millrace.contracts.spec.table_spec import AnySpec
from millrace.control.changes.spec_changes import Effect
from millrace.control.changes.table_diff import table_diff
from millrace.control.changes.table_properties import (
    LOG_CLEANING,
    MAX_COLUMNS,
    changes_of_properties,
    statistics_of,
    table_properties,
)
from millrace.control.log.batch import Winner
from millrace.control.ops_tables import OpsTables
from millrace.paths import LakehousePaths
from tests.support.documents.specs import bronze_spec, gold_spec, silver_document, silver_spec
from tests.support.ledger.delta_tables import load_batch

SILVER = silver_spec()
FEED = "delta.enableChangeDataFeed"
RETENTION, LOG_RETENTION = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


COLUMNS = {f"c{number}": "bigint" for number in range(40)} | {"tags": "array<string>", "is_new": "boolean"}


def named(*wanted: str, partitioned_by: tuple[str, ...] = ()) -> list[str]:
    (names,) = statistics_of(wanted, COLUMNS, partitioned_by).values()
    return names.split(",")


def test_the_most_wanted_columns_with_an_order_have_statistics_but_for_partitions_and_each_once() -> None:
    assert named("c3", "c1", "c3") == ["c3", "c1"]
    assert named("c1", "tags", "is_new", "c2", partitioned_by=("c2",)) == ["c1"]
    of_wide_table = named("c39", *COLUMNS)
    assert (len(of_wide_table), of_wide_table[0]) == (MAX_COLUMNS, "c39")


def set_properties(path: Path, **properties: str) -> None:
    """Set properties of a table as another system does."""
    DeltaTable(str(path)).alter.set_table_properties(
        {key.replace("__", "."): value for key, value in properties.items()}, raise_if_not_exists=False
    )


@pytest.fixture
def ops(tmp_path: Path) -> OpsTables:
    return OpsTables(LakehousePaths(tmp_path))


def drift(spec: AnySpec, last: Winner, ops: OpsTables) -> list[str]:
    """The properties that differ, in the words of `lakehouse diff`."""
    ops.specs.record(spec, last.intent.table_id)
    changes = table_diff(spec, last, ops).with_effect(Effect.MAINTAINED)
    assert not any(change.needs_run for change in changes)
    return [str(change) for change in changes]


@pytest.mark.parametrize("spec", [bronze_spec(), SILVER, gold_spec(), silver_spec(owner="the shop", contact="#shop")])
def test_a_table_with_the_properties_of_its_spec_has_no_difference(spec: AnySpec, ops: OpsTables) -> None:
    assert drift(spec, load_batch(Path(str(ops.paths.root)), spec), ops) == []


def test_each_property_that_the_spec_or_somebody_else_has_changed_is_named(ops: OpsTables) -> None:
    root, path = Path(str(ops.paths.root)), Path(str(ops.paths.table(SILVER.table)))
    last = load_batch(
        root, silver_spec(owner="the shop", contact="#shop", delta={"delta.randomizeFilePrefixes": "true"})
    )
    ops.specs.record(silver_spec(delta={"delta.randomizeFilePrefixes": "true"}), last.intent.table_id)
    set_properties(path, delta__enableChangeDataFeed="false", delta__tuneFileSizesForRewrites="true")
    other = silver_spec(classification="public", description="Orders", maintenance={"vacuum": {"retain": "40 days"}})
    assert drift(other, last, ops) == [
        "comment: empty in the table, Orders in the spec",
        f"{RETENTION}: interval 30 days in the table, interval 40 days in the spec",
        f"{FEED}: false in the table (version 2, delta-rs:py-1.6.6), true in the spec",
        f"{LOG_RETENTION}: interval 30 days in the table, interval 40 days in the spec",
        "delta.randomizeFilePrefixes: true in the table, not named any more in the spec",
        "millrace.classification: not set in the table, public in the spec",
        "millrace.contact: #shop in the table, not named any more in the spec",
        "millrace.owner: the shop in the table, not named any more in the spec",
    ], "what no spec has named is left alone"


def test_what_our_own_maintenance_has_set_is_told_with_its_run(ops: OpsTables) -> None:
    last = load_batch(Path(str(ops.paths.root)), SILVER)
    mark = CommitProperties(custom_metadata={"userMetadata": '{"maintenance": {"run_id": "nightly"}}'})
    path = str(ops.paths.table(SILVER.table))
    DeltaTable(path).alter.set_table_properties({FEED: "false"}, commit_properties=mark)
    assert drift(SILVER, last, ops) == [f"{FEED}: false in the table (version 2, nightly), true in the spec"]


def test_names_of_properties_are_the_same_in_any_case(ops: OpsTables) -> None:
    """Delta keeps them in its own spelling."""
    spec = silver_spec(delta={"delta.SETTRANSACTIONretentionDuration": "interval 900 days"})
    last = load_batch(Path(str(ops.paths.root)), SILVER)
    set_properties(Path(str(ops.paths.table(SILVER.table))), delta__setTransactionRetentionDuration="interval 900 days")
    assert drift(spec, last, ops) == []


def test_a_log_that_is_to_be_kept_stays(ops: OpsTables) -> None:
    keeping, cleaning = (silver_spec(delta={LOG_CLEANING: text}) for text in ("false", "true"))
    last = load_batch(Path(str(ops.paths.root)), cleaning)
    assert drift(keeping, last, ops) == [f"{LOG_CLEANING}: true in the table, false in the spec"]
    set_properties(Path(str(ops.paths.table(SILVER.table))), delta__enableExpiredLogCleanup="false")
    assert drift(cleaning, last, ops) == drift(SILVER, last, ops) == []


def test_statistics_are_those_of_keys_periods_and_stored_columns() -> None:
    history = silver_spec(stored_as_scd_type=2, sequence_by=["event_seq"], zorder_by=["amount"])
    [names] = [table_properties(history)["delta.dataSkippingStatsColumns"].split(",")]
    assert names[:4] == ["order_id", "__START_AT", "__END_AT", "_batch_seq"]
    assert set(names[4:]) == silver_document()["columns"].keys() - {"order_id"}


def test_statistics_of_a_column_come_with_the_column(ops: OpsTables) -> None:
    names = [*silver_document()["columns"], "_batch_seq"]
    path, statistics = str(ops.paths.table(SILVER.table)), "delta.dataSkippingStatsColumns"
    delta = DeltaTable.create(
        path, pa.schema([(name, pa.string()) for name in names]), raise_if_key_not_exists=False,
        configuration={**table_properties(SILVER), statistics: "amount"},
    )  # fmt: skip
    assert [change.key for change in changes_of_properties(SILVER, delta, ops.specs)] == [statistics]
    wider = silver_spec(columns={**silver_document()["columns"], "note": {}}, owner="the shop")
    assert [change.key for change in changes_of_properties(wider, delta, ops.specs)] == ["millrace.owner"]

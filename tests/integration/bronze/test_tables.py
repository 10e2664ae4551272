"""Creation of a bronze table, also where something else exists in its place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from include.errors import Outcome
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def test_a_table_on_disk_that_the_spec_does_not_fit_is_left_alone(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    lakehouse.run(ORDERS)
    columns = {"order_id": {"type": "bigint"}, "colour": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver_document(columns=columns, keys=["colour"], sequence_by=[]))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()
    lakehouse.deliver(1, "b.json", [order(2, 6)])
    report = lakehouse.run(ORDERS)
    assert report.outcome == Outcome.BAD_INPUT
    assert "columns.order_id.type: string becomes long" in report.message
    assert "columns.amount: the table has it (integer), the spec does not" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 1


@pytest.mark.slow
@pytest.mark.parametrize("left", [(), (".00000000000000000000.json.1.tmp",)])
def test_a_table_whose_creator_died_is_created_by_the_next_driver(lakehouse: Lakehouse, left: tuple[str, ...]) -> None:
    log = lakehouse.paths.table(ORDERS) / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).touch()
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    assert lakehouse.run(ORDERS).table_rows == 1


def test_a_folder_with_other_content_is_left_alone_and_named(lakehouse: Lakehouse) -> None:
    folder = lakehouse.paths.table(ORDERS)
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message.startswith(
        f"The folder {folder} is to become a table, but contains something else: notes.txt"
    )
    assert (folder / "notes.txt").read_text() == "mine"


def statistics(lakehouse: Lakehouse) -> set[str]:
    """The columns whose least value Delta knows of every data file."""
    actions = DeltaTable(str(lakehouse.paths.table(ORDERS))).get_add_actions(flatten=True)
    assert actions.num_rows
    return {name.removeprefix("min.") for name in pa.table(actions).column_names if name.startswith("min.")}


@pytest.mark.parametrize(
    ("stated", "columns"),
    [
        ({}, {"_source_file", "_interval_start", "_rescued"}),
        ({"zorder_by": ["day"]}, {"_source_file", "_interval_start", "_rescued", "day"}),
        ({"delta": {"delta.dataSkippingStatsColumns": "order_id"}}, {"order_id"}),
    ],
)
def test_statistics_cover_the_columns_that_queries_filter_by(
    lakehouse: Lakehouse, stated: dict[str, Any], columns: set[str]
) -> None:
    lakehouse.specs(bronze_document(**stated))
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert statistics(lakehouse) == columns


def test_statistics_can_be_read_beside_structs(lakehouse: Lakehouse) -> None:
    document = bronze_document()
    parts = "struct<name: string, geo: struct<tags: array<string>, lat: double>>"
    lakehouse.specs({**document, "columns": {"shop": {"type": parts}, **document["columns"]}})
    lakehouse.deliver(1, "a.json", [{**order(1, 5), "shop": {"name": "a", "geo": {"lat": 1.5}}}])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert statistics(lakehouse) == {"_source_file", "_interval_start", "_rescued", "shop.name", "shop.geo.lat"}


def test_instants_are_stored_so_that_readers_can_skip(lakehouse: Lakehouse) -> None:
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    lakehouse.run(ORDERS)
    (file,) = lakehouse.paths.table(ORDERS).glob("*.parquet")
    schema = pq.ParquetFile(file).schema
    kinds = {schema.column(index).name: schema.column(index).physical_type for index in range(len(schema))}
    assert (kinds["event_at"], kinds["_interval_start"]) == ("INT64", "INT64")

"""Creation of a bronze table, also where something else exists in its place, and specs that it does not fit."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from embedded.spark.server import SparkServer
from millrace.errors import Outcome
from millrace_spark.layers.bronze.bronze import bronze_shape
from tests.support.documents.specs import bronze_document, bronze_spec, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"


def test_a_table_on_disk_that_the_spec_does_not_fit_is_left_alone(lakehouse: Lakehouse) -> None:
    given(lakehouse, ORDERS, [order(1, 5)])
    columns = {"order_id": {"type": "bigint"}, "colour": {"type": "string"}}
    lakehouse.specs(bronze_document(columns=columns), silver_document(columns=columns, keys=["colour"], sequence_by=[]))
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()
    lakehouse.deliver(1, "b.json", [order(2, 6)])
    report = lakehouse.run(ORDERS)
    assert report.outcome == Outcome.BAD_INPUT
    assert "columns.order_id.type: string becomes long" in report.message
    assert "columns.amount: the table has it (integer), the spec does not" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 1


def test_another_field_for_a_column_is_a_change_of_its_rows(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(columns={"order_id": {"from": "Order ID"}}))
    (lakehouse.folder / "tables/silver/shop/orders.yaml").unlink()
    (lakehouse.folder / "tables/gold/shop/revenue_daily.yaml").unlink()
    given(lakehouse, ORDERS, [{"order_id": "o1"}])
    lakehouse.specs(bronze_document(columns={"order_id": {"nullable": False, "from": "Order Id"}}))
    lakehouse.deliver(2, "b.json", [{"Order Id": "o3"}, {"Order ID": "o4"}])
    report = lakehouse.run(ORDERS, 2)
    assert "columns.order_id.from: Order ID becomes Order Id" in " ".join(report.notes)
    assert "lakehouse rebuild bronze.orders" in " ".join(report.notes)
    assert [row["reasons"] for row in lakehouse.quarantine(ORDERS)] == [
        ["expect_column_values_to_not_be_null(order_id): order_id is null"]
    ]
    assert lakehouse.rows(ORDERS, "order_id") == [("o1",), ("o3",)]


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


@pytest.fixture(scope="module")
def created(shared: Lakehouse, server: SparkServer) -> Lakehouse:
    """A table with one row, where a driver had died while it created the table."""
    log = shared.paths.table(ORDERS) / "_delta_log"
    log.mkdir(parents=True)
    (log / ".00000000000000000000.json.1.tmp").touch()
    document = bronze_document(zorder_by=["day"])
    parts = "struct<name: string, geo: struct<tags: array<string>, lat: double>>"
    shared.specs({**document, "columns": {"shop": {"type": parts}, **document["columns"]}})
    shared.deliver(1, "a.json", [{**order(1, 5), "shop": {"name": "a", "geo": {"lat": 1.5}}}])
    shared.run(ORDERS)
    return shared


def test_a_table_whose_creator_died_is_created_by_the_next_driver(created: Lakehouse) -> None:
    (report,) = created.reports
    assert (report.outcome, report.table_rows) == (Outcome.COMMITTED, 1), report.message


def test_statistics_cover_the_columns_that_queries_filter_by_and_parts_of_structs(created: Lakehouse) -> None:
    actions = DeltaTable(str(created.paths.table(ORDERS))).get_add_actions(flatten=True)
    assert actions.num_rows
    names = {name.removeprefix("min.") for name in pa.table(actions).column_names if name.startswith("min.")}
    assert names == {"_source_file", "_interval_start", "_rescued", "day", "shop.name", "shop.geo.lat"}


def test_the_spec_may_name_the_columns_with_statistics_itself() -> None:
    of_orders = {"delta.dataSkippingStatsColumns": "order_id"}
    own = bronze_shape(bronze_spec(delta=of_orders))
    assert own.properties.items() >= of_orders.items()


def test_instants_are_stored_so_that_readers_can_skip(created: Lakehouse) -> None:
    (file,) = created.paths.table(ORDERS).glob("*.parquet")
    schema = pq.ParquetFile(file).schema
    kinds = {schema.column(index).name: schema.column(index).physical_type for index in range(len(schema))}
    assert (kinds["event_at"], kinds["_interval_start"]) == ("INT64", "INT64")

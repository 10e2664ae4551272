"""Creating a bronze table, and meeting something else in its place."""

from __future__ import annotations

import pytest

from include.errors import Outcome
from tests.support.lakehouse import Lakehouse, order
from tests.support.specs import bronze_document, silver_document

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
    assert "order_id is string in the table and long in the spec" in report.message
    assert "the spec has colour (string), the table does not" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 1


@pytest.mark.parametrize("left", [(), (".00000000000000000000.json.1.tmp",)])
def test_a_table_whose_creator_died_is_created_by_the_next_driver(lakehouse: Lakehouse, left: tuple[str, ...]) -> None:
    log = lakehouse.paths.table(ORDERS) / "_delta_log"
    log.mkdir(parents=True)
    for name in left:
        (log / name).touch()
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    assert lakehouse.run(ORDERS).table_rows == 1


def test_a_folder_that_holds_something_else_is_left_alone_and_named(lakehouse: Lakehouse) -> None:
    folder = lakehouse.paths.table(ORDERS)
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    lakehouse.deliver(1, "a.json", [order(1, 5)])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert report.message.startswith(f"The folder {folder} is to become a table, but holds something else: notes.txt")
    assert (folder / "notes.txt").read_text() == "mine"

"""`on_drift: evolve`: an undeclared field becomes a column, at once or after a person has approved it."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType

from embedded.spark.server import SparkServer
from include.control.ledger.new_columns import ColumnState, NewColumns
from include.errors import Outcome
from spark_jobs.delta_io import tables
from spark_jobs.layers.bronze.column_drift import MAX_NEW_COLUMNS
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.lakehouse import Lakehouse, order

ORDERS = "bronze.orders"
THE_LOOK_BEFORE_THE_STATEMENT = 3


def columns(lakehouse: Lakehouse, table: str = ORDERS) -> list[str]:
    """The table's columns but those that every bronze table has."""
    fields = DeltaTable(str(lakehouse.paths.table(table))).schema().fields
    return [field.name for field in fields if not field.name.startswith("_")]


def states(lakehouse: Lakehouse) -> dict[str, str]:
    return {column.name: column.state.value for column in NewColumns(lakehouse.paths).of(ORDERS)}


def decide(lakehouse: Lakehouse, state: ColumnState, *names: str) -> None:
    NewColumns(lakehouse.paths).record(state, ORDERS, names, run_id="by hand", said_by="ann")


@pytest.fixture
def evolving(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.specs(bronze_document(on_drift="evolve"))
    return lakehouse


@pytest.fixture
def asking(lakehouse: Lakehouse) -> Lakehouse:
    lakehouse.specs(bronze_document(on_drift="evolve", evolve="ask"))
    return lakehouse


def test_the_new_fields_of_all_records_become_columns_in_their_own_batch(evolving: Lakehouse) -> None:
    evolving.deliver(1, "a.json", [order(1, 5), order(2, 6, colour="red", Size="XL")])
    evolving.deliver(1, "b.json", [order(3, "many", shop=7), order(4, 8, colour="blue", shop=None)])
    report = evolving.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert (report.rows.applied, report.batch_seq) == (4, 1)
    assert evolving.rows(ORDERS, "order_id", "amount", "colour", "shop", "_rescued") == [
        ("o1", 5, None, None, None),
        ("o2", 6, "red", None, '{"Size":"XL"}'),
        ("o3", None, None, "7", '{"amount":"many"}'),
        ("o4", 8, "blue", None, None),
    ]
    assert report.details["new_columns"] == ["colour", "shop"]
    assert "new columns, as text: colour, shop. Declare them" in report.notes[-1]


def test_later_batches_have_the_columns_also_if_their_files_lack_them(evolving: Lakehouse) -> None:
    evolving.deliver(1, "a.json", [order(1, 5, colour="red")])
    evolving.run(ORDERS)
    evolving.deliver(1, "b.json", [order(2, 6)])
    evolving.deliver(1, "c.json", [order(3, 7, colour="blue")])
    again = evolving.run(ORDERS)
    assert (again.rows.applied, again.attempts, again.details) == (2, 1, {}), "nothing was new"
    assert evolving.rows(ORDERS, "order_id", "colour") == [("o1", "red"), ("o2", None), ("o3", "blue")]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_columns_of_files_evolve_like_fields(tmp_path: Path, server: SparkServer, kind: str) -> None:
    evolving = Lakehouse(tmp_path)
    source = {"landing": "orders", "files": f"*.{kind}", "format": kind}
    declared = {"order_id": {"type": "string"}, "amount": {"type": "int"}}
    evolving.specs(bronze_document(source=source, columns=declared, on_drift="evolve"))
    evolving.deliver(1, f"a.{kind}", written(kind, order_id=["o1", "o2"], amount=[1, 2], colour=["red", None]))
    evolving.deliver(1, f"b.{kind}", written(kind, order_id=["o3"], amount=[3]))
    report = evolving.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    evolving.deliver(2, f"c.{kind}", written(kind, amount=[4], order_id=["o4"]))
    evolving.run(ORDERS, 2)
    assert evolving.rows(ORDERS, "order_id", "amount", "colour", "_rescued") == [
        ("o1", 1, "red", None),
        ("o2", 2, None, None),
        ("o3", 3, None, None),
        ("o4", 4, None, None),
    ]


def test_the_next_driver_adds_the_columns_of_a_driver_that_died(evolving: Lakehouse) -> None:
    evolving.deliver(1, "a.json", [order(1, 5)])
    evolving.run(ORDERS)
    decide(evolving, ColumnState.APPROVED, "colour")
    assert "colour" not in columns(evolving)
    evolving.deliver(1, "b.json", [order(2, 6, colour="red")])
    evolving.run(ORDERS)
    assert evolving.rows(ORDERS, "order_id", "colour") == [("o1", None), ("o2", "red")]


def test_two_drivers_can_add_a_column_at_the_same_time(evolving: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    evolving.deliver(1, "a.json", [order(1, 5)])
    evolving.run(ORDERS)
    decide(evolving, ColumnState.APPROVED, "colour", "shop")
    look = tables.columns_of
    looks = list[int]()

    def overtaken(delta: DeltaTable) -> dict[str, str]:
        found = look(delta)
        looks.append(len(found))
        if len(looks) == THE_LOOK_BEFORE_THE_STATEMENT:
            DeltaTable(delta.table_uri).alter.add_columns([Field("colour", PrimitiveType("string"))])
        return found

    monkeypatch.setattr(tables, "columns_of", overtaken)
    evolving.deliver(1, "b.json", [order(2, 6, colour="red", shop=7)])
    report = evolving.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert evolving.rows(ORDERS, "order_id", "colour", "shop") == [("o1", None, None), ("o2", "red", "7")]


def test_values_that_are_written_as_names_are_refused_and_nothing_is_loaded(evolving: Lakehouse) -> None:
    evolving.deliver(1, "a.json", [order(1, 5, **{f"id_{number}": 1 for number in range(MAX_NEW_COLUMNS + 1)})])
    report = evolving.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "more than 100 fields that no column is declared for (id_0, id_1, " in report.message
    assert states(evolving) == {}
    assert evolving.rows(ORDERS, "order_id") == []


@pytest.mark.slow
def test_silver_reads_a_new_column_once_it_is_declared_also_its_earlier_values(asking: Lakehouse) -> None:
    asking.deliver(1, "a.json", [order(1, 5, shop="7")])
    asking.run(ORDERS)
    decide(asking, ColumnState.APPROVED, "shop")
    asking.deliver(1, "b.json", [order(2, 6, shop=8), order(3, 7)])
    assert asking.run(ORDERS).outcome is Outcome.COMMITTED
    declared = {**bronze_document()["columns"], "shop": {"type": "string"}}
    shop = {"type": "int", "from": "coalesce(shop, get_json_object(_rescued, '$.shop'))"}
    asking.specs(
        bronze_document(columns=declared), silver_document(columns={**silver_document()["columns"], "shop": shop})
    )
    assert asking.run("silver.orders").outcome is Outcome.COMMITTED
    assert asking.rows("silver.orders", "order_id", "shop") == [("o1", 7), ("o2", 8), ("o3", None)]


def test_a_table_that_no_longer_evolves_names_the_columns_to_declare(evolving: Lakehouse) -> None:
    evolving.deliver(1, "a.json", [order(1, 5, colour="red")])
    evolving.run(ORDERS)
    evolving.specs(bronze_document(on_drift="rescue"))
    evolving.deliver(1, "b.json", [order(2, 6)])
    report = evolving.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "columns.colour: the table has it (string), the spec does not" in report.message


def test_with_ask_new_fields_are_rescued_and_proposed_once(asking: Lakehouse) -> None:
    asking.deliver(1, "a.json", [order(1, 5, colour="red", Size="XL"), order(2, "many")])
    first = asking.run(ORDERS)
    asking.deliver(1, "b.json", [order(3, 6, colour="blue")])
    second = asking.run(ORDERS)
    assert first.details["new_columns"] == ["colour"]
    assert "lakehouse columns bronze.orders" in first.notes[-1]
    assert second.details == {}
    assert states(asking) == {"colour": "proposed"}
    assert "colour" not in columns(asking)
    assert asking.rows(ORDERS, "order_id", "_rescued") == [
        ("o1", '{"colour":"red","Size":"XL"}'),
        ("o2", '{"amount":"many"}'),
        ("o3", '{"colour":"blue"}'),
    ]


def test_an_approved_column_is_there_from_the_next_batch_on_and_a_refused_one_never(asking: Lakehouse) -> None:
    asking.deliver(1, "a.json", [order(1, 5, colour="red", shop=7)])
    asking.run(ORDERS)
    decide(asking, ColumnState.APPROVED, "colour")
    decide(asking, ColumnState.REFUSED, "shop")
    asking.deliver(1, "b.json", [order(2, 6, colour="blue", shop=8)])
    report = asking.run(ORDERS)
    assert (report.outcome, report.details) == (Outcome.COMMITTED, {})
    assert asking.rows(ORDERS, "order_id", "colour", "_rescued") == [
        ("o1", None, '{"colour":"red","shop":"7"}'),
        ("o2", "blue", '{"shop":"8"}'),
    ]
    assert states(asking) == {"colour": "approved", "shop": "refused"}
    asking.specs(bronze_document(on_drift="evolve"))
    asking.deliver(1, "c.json", [order(3, 7, shop=9)])
    assert asking.run(ORDERS).outcome is Outcome.COMMITTED
    assert "shop" not in columns(asking), "what was refused stays refused when nobody is asked any more"


def written(kind: str, **values: list[Any]) -> bytes:
    """A file of the given columns."""
    table = pa.table(values)
    if kind == "csv":
        lines = [",".join("" if value is None else str(value) for value in row.values()) for row in table.to_pylist()]
        return "\n".join([",".join(table.column_names), *lines]).encode()
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()

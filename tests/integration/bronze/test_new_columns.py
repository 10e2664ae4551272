"""`on_drift: evolve`: an undeclared field becomes a column, at once or after a person has approved it."""

from __future__ import annotations

import json

import pytest
from deltalake import DeltaTable
from deltalake.schema import Field, PrimitiveType

from millrace.control.ledger.new_columns import ColumnState, NewColumns
from millrace.errors import Outcome
from millrace_spark.delta_io import tables
from millrace_spark.layers.bronze.column_drift import MAX_NEW_COLUMNS
from tests.support.documents.specs import bronze_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

ORDERS, SILVER = "bronze.orders", "silver.orders"
THE_LOOK_BEFORE_THE_STATEMENT = 3


def columns(lakehouse: Lakehouse) -> list[str]:
    """The table's columns but those that every bronze table has."""
    fields = DeltaTable(str(lakehouse.paths.table(ORDERS))).schema().fields
    return [field.name for field in fields if not field.name.startswith("_")]


def states(lakehouse: Lakehouse) -> dict[str, str]:
    return {column.name: column.state.value for column in NewColumns(lakehouse.paths).of(ORDERS)}


def decide(lakehouse: Lakehouse, state: ColumnState, *names: str) -> None:
    NewColumns(lakehouse.paths).record(state, ORDERS, names, run_id="by hand", said_by="ann")


def test_new_fields_become_columns_in_their_own_batch_unless_there_are_too_many(lakehouse: Lakehouse) -> None:
    declared = {"order_id": {"from": "Order ID"}, "amount": {"type": "int", "from": "total"}}
    lakehouse.specs(bronze_document(on_drift="evolve", columns=declared))
    lakehouse.deliver(1, "a.json", [{"Order ID": "o1"}, {"Order ID": "o2", "colour": "red", "Size": "XL"}])
    kept = {"total": "many", "order_id": "x", "n" * 101: "a name that is too long for a column"}
    others = {**kept, "shop": 7}
    lakehouse.deliver(1, "b.json", [{"Order ID": "o3", **others}, {"Order ID": "o4", "colour": "blue", "shop": None}])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert (report.rows.applied, report.batch_seq) == (4, 1)
    rows = lakehouse.rows(ORDERS, "order_id", "amount", "colour", "shop", "_rescued")
    assert [(*row[:-1], json.loads(row[-1] or "{}")) for row in rows] == [
        ("o1", None, None, None, {}),
        ("o2", None, "red", None, {"Size": "XL"}),
        ("o3", None, None, "7", kept),
        ("o4", None, "blue", None, {}),
    ]
    assert report.details["new_columns"] == ["colour", "shop"]
    assert "new columns, as text: colour, shop. Declare them" in report.notes[-1]

    lakehouse.deliver(1, "e.json", [{f"id_{number}": 1 for number in range(MAX_NEW_COLUMNS + 1)}])
    refused = lakehouse.run(ORDERS)
    assert refused.outcome is Outcome.BAD_INPUT
    assert "more than 100 fields that no column is declared for (id_0, id_1, " in refused.message
    assert states(lakehouse) == {"colour": "approved", "shop": "approved"}

    lakehouse.specs(bronze_document(on_drift="rescue", columns=declared))
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.BAD_INPUT
    assert "columns.colour: the table has it (string), the spec does not" in report.message
    assert len(lakehouse.rows(ORDERS, "order_id")) == 4


def test_two_drivers_can_add_a_column_at_the_same_time(lakehouse: Lakehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    lakehouse.specs(bronze_document(on_drift="evolve"))
    given(lakehouse, ORDERS, [order(1, 5)])
    decide(lakehouse, ColumnState.APPROVED, "colour", "shop")
    look = tables.columns_of
    looks = list[int]()

    def overtaken(delta: DeltaTable) -> dict[str, str]:
        found = look(delta)
        looks.append(len(found))
        if len(looks) == THE_LOOK_BEFORE_THE_STATEMENT:
            DeltaTable(delta.table_uri).alter.add_columns([Field("colour", PrimitiveType("string"))])
        return found

    monkeypatch.setattr(tables, "columns_of", overtaken)
    lakehouse.deliver(1, "b.json", [order(2, 6, colour="red", shop=7)])
    report = lakehouse.run(ORDERS)
    assert report.outcome is Outcome.COMMITTED, report.message
    assert lakehouse.rows(ORDERS, "order_id", "colour", "shop") == [("o1", None, None), ("o2", "red", "7")]


def test_with_ask_a_person_decides_whether_a_field_becomes_a_column(lakehouse: Lakehouse) -> None:
    lakehouse.specs(bronze_document(on_drift="evolve", evolve="ask"))
    lakehouse.deliver(1, "a.json", [order(1, 5, colour="1", Size="XL"), order(2, "many", shop=7, tip=1)])
    first = lakehouse.run(ORDERS)
    assert first.details["new_columns"] == ["colour", "shop", "tip"]
    assert "lakehouse columns bronze.orders" in first.notes[-1]
    assert states(lakehouse) == dict.fromkeys(("colour", "shop", "tip"), "proposed")
    assert not {"colour", "shop", "tip"} & set(columns(lakehouse))

    decide(lakehouse, ColumnState.REFUSED, "shop")
    decide(lakehouse, ColumnState.APPROVED, "colour")
    lakehouse.deliver(1, "b.json", [order(3, 7, colour="3", shop=9, tip=2), order(4, 8)])
    report = lakehouse.run(ORDERS)
    assert (report.outcome, report.details) == (Outcome.COMMITTED, {}), "each field is proposed once"
    rows = [
        ("o1", None, '{"colour":"1","Size":"XL"}'),
        ("o2", None, '{"amount":"many","shop":"7","tip":"1"}'),
        ("o3", "3", '{"shop":"9","tip":"2"}'),
        ("o4", None, None),
    ]
    assert lakehouse.rows(ORDERS, "order_id", "colour", "_rescued") == rows
    lakehouse.specs(bronze_document(on_drift="evolve"))
    lakehouse.deliver(1, "c.json", [order(5, 7, colour="5", shop=9)])
    again = lakehouse.run(ORDERS)
    assert (again.rows.applied, again.attempts, again.details) == (1, 1, {}), "nothing was new"
    assert states(lakehouse) == {"colour": "approved", "shop": "refused", "tip": "proposed"}
    assert "shop" not in columns(lakehouse), "what was refused stays refused when nobody is asked any more"

    # As the guide to tables says: rows from before the approval have the field in `_rescued`.
    earlier = {"type": "int", "from": "coalesce(colour, get_json_object(_rescued, '$.colour'))"}
    lakehouse.specs(
        bronze_document(columns={**bronze_document()["columns"], "colour": {"type": "string"}}),
        silver_document(columns={**silver_document()["columns"], "colour": earlier}),
    )
    assert lakehouse.run(SILVER).outcome is Outcome.COMMITTED
    of_orders = dict(lakehouse.rows(SILVER, "order_id", "colour"))
    assert of_orders == {"o1": 1, "o2": None, "o3": 3, "o4": None, "o5": 5}

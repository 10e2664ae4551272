"""The columns before and after a column, with the SQL of each step."""

from __future__ import annotations

from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import AnySpec
from millrace.overview.lineage.chains import ROWS, ColumnChains, Step
from millrace.overview.lineage.origins import DELIVERED
from tests.support.documents.specs import SHIPPED, bronze_document, bronze_spec, gold_spec, silver_document, silver_spec

TEXT = {"type": "string"}


def chains(*specs: AnySpec) -> ColumnChains:
    return ColumnChains({spec.table: spec for spec in specs})


def flat(steps: tuple[Step, ...]) -> list[tuple[str, str, str, str]]:
    return [
        (step.table, step.column, step.how, step.text) for first in steps for step in first.all_steps
    ]  # fmt: skip


def test_a_column_goes_to_columns_and_decides_about_rows() -> None:
    found = ColumnChains(load_catalog(SHIPPED).specs).goes_to("bronze.weather", "origin")
    assert [(table, column, how) for table, column, how, _ in flat(found)] == [
        ("silver.weather", "origin", "as it is"),
        ("gold.delay_by_weather", ROWS, "joins or merges rows"),
        ("silver.weather", ROWS, "joins or merges rows"),
    ]


def test_a_part_of_a_column_is_named_and_the_parts_behind_it_are_joined() -> None:
    place = {"type": "struct<mag:double,at:struct<x:double>>", "from": "event.properties"}
    bronze = bronze_spec(columns={**bronze_document()["columns"], "properties": place})
    columns = {"mag": {"type": "double", "from": "properties.mag"}, "at": {"type": "string", "from": "properties.at"}}
    columns |= {"x": {"type": "int", "from": "at.x"}}
    silver = silver_spec(columns={**silver_document()["columns"], **columns})
    found = chains(bronze, silver)
    of = {name: found.comes_from(silver.table, name) for name in columns}
    assert [(step.path, step.how, step.text) for step in of["mag"][0].all_steps] == [
        ("properties.mag", "as it is", ""),
        ("event.properties", "computed", f"cast(event.properties as {place['type']})"),
    ]
    assert [(step.table, step.path, step.text) for step in of["at"]] == [
        (bronze.table, "properties.at", "cast(properties.at as string)")
    ]
    [own] = of["x"]
    assert (own.table, own.column, own.path) == (silver.table, "at", "at.x")


def test_a_column_is_followed_through_gold_tables_that_read_gold_tables() -> None:
    daily = gold_spec()
    total = gold_spec(table="gold.total", sources={"d": {"table": daily.table}}, measures={"all": "sum(d.revenue)"})
    specs = chains(bronze_spec(), silver_spec(), daily, total)
    assert [step[:3] for step in flat(specs.comes_from(total.table, "all"))] == [
        (daily.table, "revenue", "aggregated"),
        ("silver.orders", "amount", "aggregated"),
        ("bronze.orders", "amount", "as it is"),
        (DELIVERED, "amount", "computed"),
    ]
    assert [step[:2] for step in flat(specs.goes_to("silver.orders", "amount"))] == [
        (daily.table, "revenue"),
        (total.table, "all"),
    ]


def test_a_bronze_column_comes_from_the_field_that_it_reads() -> None:
    columns = {"order_id": {"from": "Order `ID`"}, "amount": {"type": "int", "from": "`a.b`"}, "day": {"from": "größe"}}
    columns |= {"price": {"type": "double", "decimal_comma": True}, "note": {"null_values": ["-", "?"]}}
    bronze = bronze_spec(columns=columns)
    found = {name: flat(chains(bronze).comes_from(bronze.table, name)) for name in columns}
    assert found == {
        "order_id": [(DELIVERED, "Order `ID`", "as it is", "")],
        "amount": [(DELIVERED, "a.b", "computed", "cast(`a.b` as int)")],
        "day": [(DELIVERED, "größe", "as it is", "")],
        "price": [(DELIVERED, "price", "computed", "cast(price as double) with decimal_comma: true")],
        "note": [(DELIVERED, "note", "computed", 'note with null_values: ["-", "?"]')],
    }


def test_a_column_of_the_same_table_is_a_step_of_its_own() -> None:
    columns = {
        **silver_spec().columns,
        "order_id": {"from": "trim(order_id)"},
        "label": {"from": "upper(order_id)"},
        "initial": {"from": "left(label, 1)"},
    }
    silver = silver_spec(columns=columns)
    specs = chains(bronze_spec(), silver)
    assert [step[:2] for step in flat(specs.comes_from(silver.table, "initial"))] == [
        (silver.table, "label"),
        ("bronze.orders", "order_id"),
        (DELIVERED, "order_id"),
    ]
    [step] = specs.comes_from(silver.table, "order_id")
    assert (step.table, step.column) == ("bronze.orders", "order_id"), "its own name means the column of the source"
    assert (silver.table, "initial") in {step[:2] for step in flat(specs.goes_to("bronze.orders", "order_id"))}


def test_fields_of_structs_columns_without_alias_and_odd_names_are_followed() -> None:
    bronze = bronze_spec(on_drift="evolve")
    silver = silver_spec(columns={**silver_spec().columns, "size": {"from": "`Größe`.cm + DAY.x"}})
    share = "sum(o.amount) / max(if(o.amount > 1, 1, 0))"
    gold = gold_spec(measures={"m": "max(Amount)", "n": "count(o.size.x)", "k": "m + 1", "share": share})
    specs = chains(bronze, silver, gold)
    assert [(step.table, step.column) for step in specs.comes_from(silver.table, "size")] == [
        ("bronze.orders", "Größe"),
        ("bronze.orders", "day"),
    ]
    assert {name: [(s.table, s.column) for s in specs.comes_from(gold.table, name)] for name in gold.measures} == {
        "m": [("silver.orders", "amount")],
        "n": [("silver.orders", "size")],
        "k": [(gold.table, "m")],
        "share": [("silver.orders", "amount")],
    }
    [step] = specs.comes_from(gold.table, "share")
    assert (step.uses, step.text.count("sum(")) == (("AGGREGATION", "CONDITIONAL"), 1), "used twice, it is one step"


def test_sql_that_cannot_be_read_a_table_without_a_spec_and_no_column_have_no_steps() -> None:
    gold = gold_spec(measures={"m": "(select max(x) from y)", "n": "sum(o.amount"})
    specs = chains(gold)
    assert specs.comes_from(gold.table, "m") == specs.comes_from(gold.table, "n") == ()
    assert specs.comes_from("silver.nothing", "x") == specs.comes_from(gold.table, "nothing") == ()
    assert specs.goes_to("silver.orders", "amount") == ()

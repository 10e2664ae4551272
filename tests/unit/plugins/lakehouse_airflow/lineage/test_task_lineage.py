"""Where the columns and the rows of tables come from, by their specs."""

from __future__ import annotations

from typing import Any

from openlineage.client.generated.column_lineage_dataset import ColumnLineageDatasetFacet, InputField
from openlineage.client.naming.dataset import LocalFileSystem

from lakehouse_airflow.lineage.task_lineage import column_lineage
from millrace.catalog import load_catalog
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec, parse_spec
from millrace.overview.lineage.origins import DELIVERED
from tests.support.documents.specs import SHIPPED, bronze_spec, gold_query_spec, gold_spec, silver_spec
from tests.support.silver.two_shops import BRANCH, WEB, two_shops

STATUS_SET = {"column": "status", "value_set": ["paid"]}


def lineage(spec: AnySpec, *sources: AnySpec) -> ColumnLineageDatasetFacet:
    """Return the lineage of a table; the sources of a gold table are in folders named after their aliases."""
    aliases = {source.table: alias for alias, source in spec.sources.items()} if isinstance(spec, GoldSpec) else {}
    folders = {table: [LocalFileSystem(f"/{aliases.get(table, '')}")] for table in spec.source_tables or (DELIVERED,)}
    return column_lineage(spec, folders, {source.table: source for source in sources})


def steps(fields: list[InputField]) -> dict[str, list[tuple[str, str]]]:
    """Return `<source>.<column>` -> the types and subtypes of what happens to it."""
    return {
        f"{field.name[1:]}.{field.field}".lstrip("."): [(step.type, step.subtype) for step in field.transformations]
        for field in fields
    }


def origins(facet: ColumnLineageDatasetFacet) -> dict[str, Any]:
    return {column: steps(fields.inputFields) for column, fields in facet.fields.items()}


def test_bronze_takes_text_as_it_is_and_casts_or_transforms_the_rest() -> None:
    source = {"kafka": "main", "topics": ["orders"], "format": "json", "transforms": {"sent_at": "timestamp"}}
    columns = {"order_id": {"type": "string"}, "amount": {"type": "int"}, "sent_at": {"type": "timestamp"}}
    assert origins(lineage(bronze_spec(source=source, columns=columns))) == {
        "order_id": {"order_id": [("DIRECT", "IDENTITY")]},
        "amount": {"amount": [("DIRECT", "TRANSFORMATION")]},
        "sent_at": {"timestamp": [("DIRECT", "TRANSFORMATION")]},
    }


def test_silver_follows_expressions_and_names_what_decides_about_rows() -> None:
    spec = silver_spec(
        keys=["id"],
        sequence_by=["event_at"],
        apply_as_deletes="op = 'delete'",
        columns={
            "id": {"type": "string", "from": "trim(order_id)"},
            "event_at": {"type": "timestamp"},
            "status": {"type": "string", "from": "if(paid, state, 'open')"},
        },
        expectations=[{"expect_column_values_to_be_in_set": STATUS_SET, "action": "quarantine"}],
    )
    facet = lineage(spec, bronze_spec())
    assert origins(facet) == {
        "id": {"order_id": [("DIRECT", "TRANSFORMATION")]},
        "event_at": {"event_at": [("DIRECT", "IDENTITY")]},
        "status": {"paid": [("INDIRECT", "CONDITIONAL")], "state": [("DIRECT", "TRANSFORMATION")]},
    }
    assert steps(facet.dataset or []) == {
        "order_id": [("INDIRECT", "JOIN")],
        "event_at": [("INDIRECT", "SORT")],
        "op": [("INDIRECT", "FILTER")],
        "paid": [("INDIRECT", "FILTER")],
        "state": [("INDIRECT", "FILTER")],
    }


def test_the_columns_of_several_sources_come_from_each_by_its_own_expressions() -> None:
    web, branch, silver = (parse_spec({"domain": "shop", **document}) for document in two_shops())
    folders = {table: [LocalFileSystem(f"/{table}")] for table in silver.source_tables}
    facet = column_lineage(silver, folders, {web.table: web, branch.table: branch})
    found = origins(facet)
    assert found["amount"] == {
        f"{WEB}.amount": [("DIRECT", "IDENTITY")],
        f"{BRANCH}.cents": [("DIRECT", "TRANSFORMATION")],
    }
    assert "shop" not in found, "it comes from no column"
    rows = steps(facet.dataset or [])
    assert {f"{WEB}.op", f"{BRANCH}.gone", f"{WEB}.order_id", f"{BRANCH}.number"} < rows.keys()
    assert rows[f"{BRANCH}.number"] == [("INDIRECT", "JOIN")]


def test_gold_groups_aggregates_joins_and_filters() -> None:
    sources = {
        "o": {"table": "silver.orders", "where": "amount > 0"},
        "c": {"table": "silver.customers", "join": "left", "on": "c.id = o.customer"},
    }
    measures = {"orders": "count(*)", "revenue": "sum(o.amount) filter (where c.is_known)"}
    refresh = {"o": "day", "c": "day"}
    facet = lineage(gold_spec(sources=sources, measures=measures, refresh_from=refresh, group_by={"day": "o.day"}))
    assert origins(facet) == {
        "day": {"o.day": [("DIRECT", "IDENTITY")]},
        "revenue": {"o.amount": [("DIRECT", "AGGREGATION")], "c.is_known": [("INDIRECT", "FILTER")]},
    }
    assert steps(facet.dataset or []) == {
        "o.day": [("INDIRECT", "GROUP_BY")],
        "c.id": [("INDIRECT", "JOIN")],
        "o.customer": [("INDIRECT", "JOIN")],
        "o.amount": [("INDIRECT", "FILTER")],
    }


def test_a_query_is_followed_through_its_levels() -> None:
    query = """
        WITH ranked AS (SELECT *, rank() OVER (PARTITION BY day ORDER BY amount) AS place FROM o WHERE is_paid)
        SELECT r.day, sum(r.amount + 1) AS total, max(c.name) AS name, count(*) AS n, min(place) AS best
        FROM ranked AS r LEFT JOIN c ON c.id = r.customer GROUP BY r.day
    """
    orders = silver_spec(columns={name: {"type": "string"} for name in ("day", "amount", "customer", "is_paid")})
    customers = silver_spec(table="silver.customers", columns={name: {"type": "string"} for name in ("id", "name")})
    sources = {"o": {"table": orders.table}, "c": {"table": customers.table}}
    facet = lineage(gold_query_spec(sources=sources, query=query), orders, customers)
    assert origins(facet) == {
        "day": {"o.day": [("DIRECT", "IDENTITY")]},
        "total": {"o.amount": [("DIRECT", "AGGREGATION")]},
        "name": {"c.name": [("DIRECT", "AGGREGATION")]},
        "best": {"o.day": [("INDIRECT", "WINDOW")], "o.amount": [("INDIRECT", "WINDOW")]},
    }
    assert steps(facet.dataset or []) == {
        "o.is_paid": [("INDIRECT", "FILTER")],
        "o.day": [("INDIRECT", "GROUP_BY")],
        "c.id": [("INDIRECT", "JOIN")],
        "o.customer": [("INDIRECT", "JOIN")],
    }


def test_each_column_of_the_flights_has_an_origin_but_the_counts_of_rows() -> None:
    history = origins(lineage(silver_spec(stored_as_scd_type=2)))
    assert history["__START_AT"].keys() == history["__END_AT"].keys() == {"event_at", "event_seq"}
    for spec in load_catalog(SHIPPED).of_domain("flights"):
        assert isinstance(spec, BronzeSpec | SilverSpec | GoldSpec)
        is_gold = isinstance(spec, GoldSpec)
        columns = {*spec.group_by, *spec.measures} if is_gold else set(spec.columns)
        assert columns - set(lineage(spec).fields) == ({"flights"} if is_gold else set()), spec.table

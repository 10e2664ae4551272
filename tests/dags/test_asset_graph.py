"""The graph of assets in the UI, as Airflow's web server computes it from the DAGs in its database."""

from __future__ import annotations

from airflow.api_fastapi.core_api.services.ui.dependencies import get_data_dependencies
from airflow.models.asset import AssetModel
from sqlalchemy import select
from sqlalchemy.orm import Session

from include.catalog import load_catalog
from include.settings import PROJECT


def edges_around(table: str, database: Session) -> set[tuple[str, str]]:
    """Return the edges of the graph on the page of a table's asset; a task is called `<dag>.<task>`."""
    asset = database.scalar(select(AssetModel.id).where(AssetModel.name == table))
    graph = get_data_dependencies(asset, database)
    names = {node["id"]: node["label"] for node in graph["nodes"]}
    return {(names[edge["source_id"]], names[edge["target_id"]]) for edge in graph["edges"]}


def test_the_graph_of_an_asset_leads_from_bronze_by_the_gates_to_gold(database: Session) -> None:
    catalog = load_catalog(PROJECT / "include" / "tables")
    upstream = ["bronze.flight_events", "bronze.weather", "silver.flights", "silver.weather", "gold.delay_by_weather"]
    expected = set()
    for table in upstream:
        gate = f"flights.{table}_gate"
        expected |= {(gate, table), *((source, gate) for source in catalog.spec(table).source_tables)}
    assert len(expected) == 9
    assert expected <= edges_around("gold.delay_by_weather", database)
    downstream = {
        ("bronze.weather", "flights.silver.weather_gate"),
        ("silver.weather", "flights.gold.delay_by_weather_gate"),
    }
    assert downstream <= edges_around("bronze.weather", database)

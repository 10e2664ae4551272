"""Small valid specs for tests, in which a test changes keys: as documents, models, catalogs and files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from embedded.clone import DEMO
from millrace.catalog import Catalog
from millrace.contracts.spec.table_spec import AnySpec, BronzeSpec, GoldSpec, SilverSpec, parse_spec

Document = dict[str, Any]


def bronze_document(table: str = "bronze.orders", **changes: Any) -> Document:
    """Return a bronze spec of JSON lines with the columns `order_id`, `amount`, `day`, `event_at` and `event_seq`."""
    name = table.partition(".")[2]
    columns = {"order_id": "string", "amount": "int", "day": "date", "event_at": "timestamp", "event_seq": "int"}
    return {
        "table": table,
        "source": {"landing": name, "files": "*.json", "format": "json"},
        "columns": {column: {"type": kind} for column, kind in columns.items()},
        **changes,
    }


def silver_document(table: str = "silver.orders", **changes: Any) -> Document:
    """Return the spec of a silver table: key `order_id`, sequence `event_at`, `event_seq`; all keys may be deleted."""
    return {
        "table": table,
        "source": "bronze.orders",
        "keys": ["order_id"],
        "sequence_by": ["event_at", "event_seq"],
        "max_deleted_percent": 100,
        "columns": {
            "order_id": {"type": "string", "nullable": False},
            "amount": {"type": "int"},
            "day": {"type": "date"},
            "event_at": {"type": "timestamp"},
            "event_seq": {"type": "int"},
        },
        **changes,
    }


def gold_document(table: str = "gold.revenue_daily", **changes: Any) -> Document:
    """Return the spec of a gold table: the number of orders and their amount by day."""
    return {
        "table": table,
        "sources": {"o": {"table": "silver.orders"}},
        "refresh_by": "day",
        "refresh_from": {"o": "day"},
        "group_by": {"day": "o.day"},
        "measures": {"orders": "count(*)", "revenue": "sum(o.amount)"},
        **changes,
    }


def sums_document(table: str, column: str) -> Document:
    """Return the spec of a gold table: the number of orders and their amount by a column of `silver.orders`."""
    measures = {"orders": "count(*)", "total": "sum(o.amount)"}
    groups = {"group_by": {column: f"o.{column}"}, "refresh_by": column, "refresh_from": {"o": column}}
    return gold_document(table, measures=measures, **groups)


def query_document(table: str = "gold.last_orders", **changes: Any) -> Document:
    """Return the spec of a gold table with a query over `silver.orders`, as `o`: its orders with their day."""
    query = "SELECT day, order_id, amount FROM o"
    return {"table": table, "sources": {"o": {"table": "silver.orders"}}, "query": query, **changes}


def bronze_spec(**changes: Any) -> BronzeSpec:
    """Return `bronze_document` as a model of the domain `shop`."""
    return BronzeSpec.model_validate({"domain": "shop", **bronze_document(**changes)})


def silver_spec(**changes: Any) -> SilverSpec:
    """Return `silver_document` as a model of the domain `shop`."""
    return SilverSpec.model_validate({"domain": "shop", **silver_document(**changes)})


def gold_spec(**changes: Any) -> GoldSpec:
    """Return `gold_document` as a model of the domain `shop`."""
    return GoldSpec.model_validate({"domain": "shop", **gold_document(**changes)})


def gold_query_spec(**changes: Any) -> GoldSpec:
    """Return `query_document` as a model of the domain `shop`."""
    return GoldSpec.model_validate({"domain": "shop", **query_document(**changes)})


def catalog_of(*specs: AnySpec | Document) -> Catalog:
    """Return a catalog of specs or documents in the given order; links between them are not checked."""
    models = [spec if not isinstance(spec, dict) else parse_spec({"domain": "shop", **spec}) for spec in specs]
    return Catalog({spec.table: spec for spec in models})


def write_specs(folder: Path, *documents: Mapping[str, Any], domain: str = "shop") -> Path:
    """Write each document to its place below `folder`, and return `folder`."""
    for document in documents:
        layer, _, name = str(document["table"]).partition(".")
        path = folder / layer / domain / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(dict(document), sort_keys=False), encoding="utf-8")
    return folder


def write_spec(folder: Path, place: str, text: str) -> Path:
    """Write the YAML `text` at `place`, such as `silver/shop/orders.yaml`, and return the path of the file."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


SHIPPED = DEMO / "tables"
"""The folder of the specs that ship with Millrace."""

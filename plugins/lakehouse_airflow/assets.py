"""The Asset of a table: the name under which other DAGs wait for its certified versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Asset
from airflow.sdk.execution_time.context import InletEventsAccessor

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOOK_BACK = 50


def table_asset(table: str) -> Asset:
    """The asset of `<layer>.<name>`; its group in the UI is the layer.

    >>> table_asset("silver.flights").uri
    'millrace://silver/flights'
    """
    layer, name = table.split(".")
    return Asset(name=table, uri=f"millrace://{layer}/{name}", group=layer)


def announced_by(context: Context, asset: Asset, version: int | None) -> bool:
    """Whether the run of `context` has announced this version before: a task that was cleared runs once more."""
    run = context["dag_run"]
    recent = InletEventsAccessor(asset_name=asset.name, asset_uri=asset.uri).ascending(False).limit(_LOOK_BACK)
    return any(
        (event.source_dag_id, event.source_run_id) == (run.dag_id, run.run_id)
        and (event.extra or {}).get("version") == version
        for event in recent
    )

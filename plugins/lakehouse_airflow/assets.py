"""The Assets under which DAGs wait for each other: certified versions of tables, and new columns to decide about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import InletEventsAccessor

if TYPE_CHECKING:
    from airflow.sdk import Context

_LOOK_BACK = 50

PROPOSED_COLUMNS = Asset(name="proposed_columns", uri="millrace://ops/columns", group="ops")
"""An event of it says that records brought fields about which somebody is to decide."""

MAY_PROPOSE_COLUMNS = AssetAlias(name="proposed_columns", group="ops")
"""What a task has as outlet that emits `PROPOSED_COLUMNS` only where there are some."""

REPLAYED_TABLE = AssetAlias(name="replayed_table", group="ops")
"""What the task of a replay has as outlet: which table it is, the form says."""

REBUILT_TABLE = AssetAlias(name="rebuilt_table", group="ops")
"""What the task of a rebuild has as outlet: which tables they are, the form says."""

OVERRIDDEN_TABLE = AssetAlias(name="overridden_table", group="ops")
"""What the task of a gate override has as outlet: which table it is, the form says."""


def table_asset(table: str) -> Asset:
    """The asset of `<layer>.<name>`; its group in the UI is the layer.

    >>> table_asset("silver.flights").uri
    'millrace://silver/flights'
    """
    layer, name = table.split(".")
    return Asset(name=table, uri=f"millrace://{layer}/{name}", group=layer)


def announced_by(context: Context, asset: Asset, version: int | None) -> bool:
    """Whether this version, of the run of `context`, was announced before.

    By the run itself, since a task that was cleared runs once more; or by the override that let it pass.
    """
    run = context["dag_run"]
    recent = InletEventsAccessor(asset_name=asset.name, asset_uri=asset.uri).ascending(False).limit(_LOOK_BACK)
    told = [(event, event.extra or {}) for event in recent]
    return any(
        extra.get("version") == version
        and (
            (event.source_dag_id, event.source_run_id) == (run.dag_id, run.run_id) or extra.get("run_id") == run.run_id
        )
        for event, extra in told
    )

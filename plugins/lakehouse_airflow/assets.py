"""The assets that DAGs wait for: certified versions of tables, and new columns to decide about."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset, AssetAlias
from airflow.sdk.execution_time.context import InletEventsAccessor

from millrace.contracts.asset_event import by_interval
from millrace.contracts.job.args import WRITER_OF_LAYER

if TYPE_CHECKING:
    from airflow.sdk import Context

_RECENT_EVENTS = 50
_TABLES = tuple(f"millrace://{layer}/" for layer in WRITER_OF_LAYER)

PROPOSED_COLUMNS = Asset(name="proposed_columns", uri="millrace://ops/columns", group="ops")
"""An event means that records have undeclared fields about which a person must decide."""

MAY_PROPOSE_COLUMNS = AssetAlias(name="proposed_columns", group="ops")
"""The outlet of a task that emits `PROPOSED_COLUMNS` only where there are new fields."""

REPLAYED_TABLE = AssetAlias(name="replayed_table", group="ops")
"""The outlet of a replay; the form names the table."""

REBUILT_TABLE = AssetAlias(name="rebuilt_table", group="ops")
"""The outlet of a rebuild; the form names the table."""

REPAIRED_TABLE = AssetAlias(name="repaired_table", group="ops")
"""The outlet of a repair; the form names the table."""

OVERRIDDEN_TABLE = AssetAlias(name="overridden_table", group="ops")
"""The outlet of a gate override; the form names the table."""


def table_asset(table: str) -> Asset:
    """Return the asset of `<layer>.<name>`; its group in the UI is the layer.

    >>> table_asset("silver.flights").uri
    'millrace://silver/flights'
    """
    layer, name = table.split(".")
    return Asset(name=table, uri=f"millrace://{layer}/{name}", group=layer)


def interval_asset(table: str) -> Asset:
    """Return the asset of `<layer>.<name>` for DAGs with a partitioned schedule: its events have an interval's key.

    It is an asset of its own, since an event with a key starts no DAG that waits for the asset without partitions
    (`AssetManager._queue_dagruns` of Airflow 3.3.2).

    >>> interval_asset("silver.flights").name
    'silver.flights by interval'
    """
    asset = table_asset(table)
    return Asset(name=by_interval(table), uri=f"{asset.uri}/intervals", group=asset.group)


def is_announced(context: Context, asset: Asset, version: int | None, *, by_any_run: bool = False) -> bool:
    """Whether an earlier event announced this version, for the run of `context` or, if asked, by any run.

    The run itself announced it if its task was cleared and runs again; an override announces the version that it lets
    pass.
    """
    run = context["dag_run"]
    recent = InletEventsAccessor(asset_name=asset.name, asset_uri=asset.uri).ascending(False).limit(_RECENT_EVENTS)
    for event in recent:
        extra = event.extra or {}
        is_of_run = (event.source_dag_id, event.source_run_id) == (run.dag_id, run.run_id)
        if extra.get("version") == version and (by_any_run or is_of_run or extra.get("run_id") == run.run_id):
            return True
    return False


def outlets_with_events(outlets: Sequence[Any], emitted: Collection[Asset]) -> list[Any]:
    """Return the outlets of a task that emits the events of these assets, and no other event of a table.

    Airflow emits an event for each asset among the outlets of a task that succeeded, and has no call to withhold one.
    A task runs on a copy of its operator, so that this changes no DAG.
    """
    return [outlet for outlet in outlets if outlet in emitted or not _is_of_table(outlet)]


def _is_of_table(outlet: Any) -> bool:
    return isinstance(outlet, Asset) and outlet.uri.startswith(_TABLES)

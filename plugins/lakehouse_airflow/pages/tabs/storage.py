"""The tab Storage: are the files of the table in order, and what does the next maintenance do, and why?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow.models.dag import DagModel

from lakehouse_airflow.pages.tab import ShownTable, Tab
from lakehouse_airflow.ui.links import MAINTENANCE_DAG_ID, dag_path
from millrace.control.maintenance.health import table_health
from millrace.specs.invalid_spec import InvalidSpec


@dataclass(frozen=True)
class Schedule:
    """The DAG that maintains the tables.

    Attributes:
        path: the path of its page.
        is_paused: whether it is paused.
        next_run: when it runs next; None if it does not.
    """

    path: str
    is_paused: bool
    next_run: datetime | None


def _values(shown: ShownTable) -> Mapping[str, Any]:
    spec = shown.overview.spec
    if isinstance(spec, InvalidSpec):
        return {}
    with shown.reader.ledger() as ops:
        health = table_health(spec, shown.reader.catalog(), ops, shown.now)
    days = shown.overview.health.days if shown.overview.health else ()
    return {"health": health, "days": days, "schedule": _schedule()}


def _schedule() -> Schedule | None:
    dag = DagModel.get_dagmodel(MAINTENANCE_DAG_ID)
    if dag is None or dag.is_stale:
        return None
    return Schedule(dag_path(MAINTENANCE_DAG_ID), dag.is_paused, dag.next_dagrun_create_after)


TAB = Tab("storage", "Storage", _values, lambda table: not isinstance(table.spec, InvalidSpec))

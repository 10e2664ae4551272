"""The page Lakehouse: is anything wrong, and where? Every table, with what needs a person on top."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import Request
from fastapi.responses import HTMLResponse

from lakehouse_airflow.pages.airflow_dags import domains_with_dag, existing_runs, where_to_act
from lakehouse_airflow.pages.failed_tasks import failed_tasks, items_for
from lakehouse_airflow.pages.reader import lakehouse
from lakehouse_airflow.pages.rendering import page
from millrace.alerts.down_servers import DownServers
from millrace.clock import utc_now
from millrace.contracts.spec.values import layer_order
from millrace.overview.attention import attention_needed
from millrace.overview.tables.table_overview import SEVERITY, TableOverview
from millrace.settings import Settings

_ROWS, _ITEMS = 100, 10
"""The tables on one page, and the items that need a person above them."""

_SORTS: dict[str, Callable[[TableOverview], Any]] = {
    "table": lambda table: table.table,
    "state": lambda table: SEVERITY.index(table.condition),
    "rows": lambda table: -(table.measures.rows or 0) if table.measures else 1,
    "quarantine": lambda table: -table.waiting.rows if table.waiting else 1,
    "loaded": lambda table: table.last.at.timestamp() if table.last else 0.0,
    "owner": lambda table: table.spec.owner,
}
"""Name of an order -> its key."""


def lakehouse_page(
    request: Request,
    user: GetUserDep,
    session: SessionDep,
    q: str = "",
    domain: str = "",
    layer: str = "",
    state: str = "",
    owner: str = "",
    sort: str = "",
    page_no: int = 1,
) -> HTMLResponse:
    """Show the tables that a filter leaves, in an order.

    Args:
        request: the request.
        user: who asks.
        session: Airflow's database.
        q: a text in the name, the description or the owner of a table.
        domain: only tables of this domain.
        layer: only tables of this layer.
        state: only tables in this condition.
        owner: only tables of this owner.
        sort: a name of `_SORTS`; by default by domain and layer.
        page_no: the part of the list, from 1.
    """
    now = utc_now()
    with lakehouse() as reader:
        tables = reader.read(now, partial(failed_tasks, session))
        servers = DownServers(Settings().absolute().paths).at(now)
    chosen = {"domain": domain, "layer": layer, "state": state, "owner": owner}
    shown = [table for table in tables if _matches(table, q.strip().lower(), chosen)]
    shown.sort(key=_SORTS.get(sort, lambda table: (table.spec.domain, layer_order(table.spec.layer), table.table)))
    items = attention_needed(shown, now)
    first = _ROWS * (max(page_no, 1) - 1)
    part = shown[first : first + _ROWS]
    return page(
        "lakehouse.html",
        servers=servers,
        items=items_for(items[:_ITEMS], request, user),
        where=where_to_act(session, items[:_ITEMS]),
        more_items=max(len(items) - _ITEMS, 0),
        groups=[("", part)] if sort in _SORTS and part else _by_domain(part),
        shown=len(shown),
        total=len(tables),
        first=first,
        rows=_ROWS,
        page_no=max(page_no, 1),
        counts=_counts(tables),
        choices=_choices(tables),
        runs=existing_runs(session, ((each.table, each.spec.domain, each.last) for each in part if each.last)),
        plans=domains_with_dag(session, {table.spec.domain for table in part}),
        query={**chosen, "q": q, "sort": sort},
    )


def _by_domain(tables: Sequence[TableOverview]) -> list[tuple[str, list[TableOverview]]]:
    """Return (domain, its tables) for tables in the order of domains."""
    groups = groupby(tables, lambda table: table.spec.domain)
    return [(domain or "no domain", list(of_domain)) for domain, of_domain in groups]


def _matches(table: TableOverview, text: str, chosen: dict[str, str]) -> bool:
    facts = _facts(table)
    if any(value and value != facts[name] for name, value in chosen.items()):
        return False
    description = getattr(table.spec, "description", "")
    return not text or any(text in each.lower() for each in (table.table, description, table.spec.owner))


def _facts(table: TableOverview) -> dict[str, str]:
    spec = table.spec
    return {"domain": spec.domain, "layer": spec.layer, "state": table.condition.value, "owner": spec.owner}


def _counts(tables: Sequence[TableOverview]) -> list[tuple[str, int]]:
    """Return (condition, number of tables), the worst condition first."""
    counts = Counter(table.condition for table in tables)
    return [(condition.value, counts[condition]) for condition in SEVERITY if counts[condition]]


def _choices(tables: Sequence[TableOverview]) -> dict[str, list[str]]:
    """Return filter -> the values that tables have."""
    names = ("domain", "layer", "state", "owner")
    return {name: sorted({value for table in tables if (value := _facts(table)[name])}) for name in names}

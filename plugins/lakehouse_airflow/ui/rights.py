"""The rights that pages need, as Airflow's own pages with the same content do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_asset, requires_access_dag
from fastapi import Depends, HTTPException, Request

from millrace.settings import Settings

MAY_READ_LOGS = Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))
"""The right to pages with results of a DAG; a route without a DAG needs it for all DAGs."""


def _require_row_values(request: Request, user: GetUserDep) -> None:
    _access_to_rows()(request, user)


MAY_SEE_ROWS = Depends(_require_row_values)
"""The right to pages with values of rows of the domain of a DAG, whose id is in the address."""

MAY_READ_DAG = Depends(requires_access_dag("GET"))
"""The right to pages about a DAG, whose id is in the address."""

MAY_VIEW = Depends(requires_access_asset("GET"))
"""The right to pages about tables: a table is an asset, whose description and events Airflow shows with this right."""


MAY_READ_RUN = Depends(requires_access_dag("GET", DagAccessEntity.RUN))
"""The right to pages about a run of a DAG, as Airflow's own page of the run needs it."""


def may_see_rows(domain: str, request: Request, user: Any) -> bool:
    """Whether a user may see values of rows of a domain, as the setting `LAKEHOUSE_ROW_VALUES_FOR` says."""
    return _is_granted(_access_to_rows(domain), request, user)


def may_read_dag(dag_id: str, request: Request, user: Any) -> bool:
    """Whether a user may see that there is a DAG."""
    return _is_granted(requires_access_dag("GET", param_dag_id=dag_id), request, user)


def _access_to_rows(domain: str | None = None) -> Callable[[Request, Any], None]:
    """Return what asks Airflow for the right to edit the domain's DAG, or to read the logs of its tasks."""
    if Settings().row_values_for == "log_readers":
        return requires_access_dag("GET", DagAccessEntity.TASK_LOGS, domain)
    return requires_access_dag("PUT", param_dag_id=domain)


def _is_granted(require: Callable[[Request, Any], None], request: Request, user: Any) -> bool:
    try:
        require(request, user)
    except HTTPException:
        return False
    return True

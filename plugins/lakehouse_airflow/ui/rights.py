"""The rights that pages need, as Airflow's own pages of the same content do."""

from __future__ import annotations

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import requires_access_asset, requires_access_dag
from airflow.models.dag import DagModel
from fastapi import Depends

MAY_READ_LOGS = Depends(requires_access_dag("GET", DagAccessEntity.TASK_LOGS))
"""The right to pages with results of a DAG; a route without a DAG needs it for all DAGs."""

MAY_VIEW = Depends(requires_access_asset("GET"))
"""The right to pages about tables: a table is an asset, whose description and events Airflow shows with this right."""


def may_see_rows(domain: str, user: BaseUser) -> bool:
    """Whether a user may see values of rows: those who may read the logs of the tasks of the domain's DAG."""
    details = DagDetails(id=domain, team_name=DagModel.get_team_name(domain))
    return get_auth_manager().is_authorized_dag(
        method="GET", access_entity=DagAccessEntity.TASK_LOGS, details=details, user=user
    )

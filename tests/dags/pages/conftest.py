"""Users of the pages who lack a right."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


def deny(monkeypatch: pytest.MonkeyPatch, denied: DagAccessEntity | None, *dag_ids: str, method: str = "") -> None:
    """Take a right about DAGs from everybody, which a manager of roles for each DAG can do; without a DAG, of all."""
    may = SimpleAuthManager.is_authorized_dag

    def is_authorized_dag(manager: SimpleAuthManager, **asked: Any) -> bool:
        is_meant = asked["access_entity"] is denied and method in ("", asked["method"])
        is_denied = is_meant and (not dag_ids or asked["details"].id in dag_ids)
        return not is_denied and bool(may(manager, **asked))

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", is_authorized_dag)


def deny_rows(monkeypatch: pytest.MonkeyPatch, *dag_ids: str) -> None:
    """Take the right to edit DAGs from everybody, with which they may see values of rows."""
    deny(monkeypatch, None, *dag_ids, method="PUT")

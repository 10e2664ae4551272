"""Users of the pages who lack a right."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager


@pytest.fixture
def without_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody may read the logs of the tasks of the DAG `shop`, which a manager of roles for each DAG can say."""
    may = SimpleAuthManager.is_authorized_dag

    def is_authorized_dag(manager: SimpleAuthManager, **asked: Any) -> bool:
        is_log = asked["access_entity"] is DagAccessEntity.TASK_LOGS and asked["details"].id == "shop"
        return not is_log and bool(may(manager, **asked))

    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", is_authorized_dag)

"""Who can read Millrace's pages on Airflow's API server: real requests to its real application."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from airflow import settings
from airflow.api_fastapi.app import create_app, purge_cached_app
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from airflow.models import import_all_models
from airflow.models.base import Base
from fastapi.testclient import TestClient

from include.settings import Settings
from lakehouse_airflow.ui.data_docs import app, run_folder
from lakehouse_airflow.ui.links import URL_PREFIX

PLACE = {"dag_id": "shop", "run_id": "run", "table": "bronze.orders", "name": "0123", "page": "bronze.orders.html"}
ROUTES = [URL_PREFIX + route.path.format(**PLACE) for route in app.routes]
PAGE = ROUTES[-1]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """An API server with one built page; ann may read everything, eve has no role."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_ROOT", str(tmp_path_factory.mktemp("lakehouse")))
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:viewer,eve:")
        page = run_folder(PLACE["dag_id"], PLACE["run_id"], Settings().run_paths) / PLACE["name"] / PLACE["page"]
        page.parent.mkdir(parents=True)
        page.write_text("values of rows")
        import_all_models()
        Base.metadata.create_all(settings.engine)
        yield TestClient(create_app("core"), follow_redirects=False)
        purge_cached_app()


def login(server: TestClient, user: str) -> dict[str, str]:
    """Return the headers of requests of `user`, who has logged in."""
    body = {"username": user, "password": SimpleAuthManager.get_passwords()[user]}
    return {"Authorization": f"Bearer {server.post('/auth/token', json=body).json()['access_token']}"}


@pytest.mark.parametrize("path", ROUTES)
def test_nobody_reads_a_page_without_a_login_and_the_right_to_it(server: TestClient, path: str) -> None:
    assert server.get(path).status_code == 401
    assert server.get(path, headers={"Authorization": "Bearer forged"}).status_code == 403
    assert server.get(path, headers=login(server, "eve")).status_code == 403


def test_a_user_who_may_read_the_dags_task_logs_reads_its_pages(server: TestClient) -> None:
    answer = server.get(PAGE, headers=login(server, "ann"))
    assert (answer.status_code, answer.text) == (200, "values of rows")

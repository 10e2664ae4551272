"""A private Airflow home for these tests, set before anything imports Airflow, and the DAGs of the demo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from millrace.settings import Settings
from tests.support.airflow.airflow_home import copy_dags, use_private_airflow
from tests.support.airflow.shown_lakehouse import make_shown_lakehouse

use_private_airflow()

from airflow import settings  # noqa: E402
from airflow.api_fastapi.app import create_app, purge_cached_app  # noqa: E402
from airflow.dag_processing.bundles.manager import DagBundlesManager  # noqa: E402
from airflow.dag_processing.dagbag import DagBag, sync_bag_to_db  # noqa: E402
from airflow.models import import_all_models  # noqa: E402
from airflow.models.base import Base  # noqa: E402
from airflow.sdk import DAG  # noqa: E402
from airflow.utils.db import synchronize_log_template  # noqa: E402
from airflow.utils.session import create_session  # noqa: E402
from fastapi import FastAPI  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from tests.support.airflow.shown_runs import BUNDLE  # noqa: E402

USERS = ("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", "ann:viewer,bob:user,dan:op,eve:")
"""ann may read everything, bob also trigger DAGs, dan also create asset events; eve has no role."""


@pytest.fixture(scope="session")
def bag(tmp_path_factory: pytest.TempPathFactory) -> DagBag:
    """Every DAG file of the demo, all of which import with its specs."""
    folder = copy_dags(tmp_path_factory.mktemp("bag") / "dags")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("LAKEHOUSE_TABLES", raising=False)
        bag = DagBag(dag_folder=str(folder), bundle_path=folder, bundle_name=BUNDLE)
    assert bag.import_errors == {}
    return bag


@pytest.fixture(scope="session")
def dags(bag: DagBag) -> dict[str, DAG]:
    """Return DAG id -> DAG of every DAG file of the demo."""
    return dict(bag.dags)


@pytest.fixture(scope="session")
def database(bag: DagBag) -> Iterator[Session]:
    """A session of Airflow's database, into which the DAG files of the demo were parsed."""
    import_all_models()
    Base.metadata.create_all(settings.engine)
    with create_session() as session:
        synchronize_log_template(session=session)
        DagBundlesManager().sync_bundles_to_db(session=session)
        session.commit()
        sync_bag_to_db(bag, BUNDLE, None, session=session)
        session.commit()
        yield session


@pytest.fixture(scope="session")
def api_server() -> Iterator[FastAPI]:
    """Airflow's API server, which takes seconds to make."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(*USERS)
        import_all_models()
        Base.metadata.create_all(settings.engine)
        app = create_app("core")
    yield app
    purge_cached_app()


@pytest.fixture(scope="module")
def server(api_server: FastAPI, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The API server of an empty lakehouse."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_ROOT", str(tmp_path_factory.mktemp("lakehouse")))
        patch.setenv(*USERS)
        yield TestClient(api_server, follow_redirects=False)


@pytest.fixture(scope="module")
def shown_lakehouse(server: TestClient, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The lakehouse of the server, with tables in every condition."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LAKEHOUSE_TABLES", str(tmp_path_factory.mktemp("specs")))
        lakehouse = Settings()
        make_shown_lakehouse(lakehouse.root, lakehouse.tables)  # type: ignore[arg-type]
        yield

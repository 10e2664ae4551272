"""A private Airflow home for these tests, set before anything imports Airflow, and the DAGs of dags/."""

from __future__ import annotations

import pytest

from include.settings import PROJECT
from tests.support.airflow.airflow_home import use_private_airflow

use_private_airflow()

from airflow.dag_processing.dagbag import DagBag  # noqa: E402
from airflow.sdk import DAG  # noqa: E402


@pytest.fixture(scope="session")
def dags() -> dict[str, DAG]:
    """Return DAG id -> DAG of every file in dags/, all of which import."""
    bag = DagBag(dag_folder=str(PROJECT / "dags"), bundle_path=PROJECT / "dags", bundle_name="dags")
    assert bag.import_errors == {}
    return dict(bag.dags)

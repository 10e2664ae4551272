"""Gives these tests an Airflow home of their own, before anything imports Airflow."""

from __future__ import annotations

from tests.support.airflow.airflow_home import use_private_airflow

use_private_airflow()

"""Turns table specs into DAGs: what a DAG file calls, in one line."""

from lakehouse_airflow.factory.domain import build_domain_dag
from lakehouse_airflow.factory.maintenance import build_maintenance_dag

__all__ = ["build_domain_dag", "build_maintenance_dag"]

"""Functions that build DAGs from table specs; a DAG file calls one of them.

What a task does is in `lakehouse_airflow.operators`.
"""

from lakehouse_airflow.factory.alerts import build_alerts_dag
from lakehouse_airflow.factory.approvals import (
    build_column_approvals_dag,
    build_delete_approval_dag,
    build_gate_override_dag,
)
from lakehouse_airflow.factory.domain import build_domain_dag
from lakehouse_airflow.factory.erasure import build_subject_erasure_dag
from lakehouse_airflow.factory.maintenance import build_maintenance_dag
from lakehouse_airflow.factory.quarantine import build_quarantine_replay_dag
from lakehouse_airflow.factory.rebuild import build_table_rebuild_dag
from lakehouse_airflow.factory.repair import build_table_repair_dag
from lakehouse_airflow.factory.vacuum import build_table_vacuum_dag

__all__ = [
    "build_alerts_dag",
    "build_column_approvals_dag",
    "build_delete_approval_dag",
    "build_domain_dag",
    "build_gate_override_dag",
    "build_maintenance_dag",
    "build_quarantine_replay_dag",
    "build_subject_erasure_dag",
    "build_table_rebuild_dag",
    "build_table_repair_dag",
    "build_table_vacuum_dag",
]

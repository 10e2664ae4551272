"""The tables of the shop, every day, and Millrace's own DAGs: approvals, replays, rebuilds, maintenance."""

from datetime import UTC, datetime

from lakehouse_airflow.factory import (
    build_column_approvals_dag,
    build_delete_approval_dag,
    build_domain_dag,
    build_gate_override_dag,
    build_maintenance_dag,
    build_quarantine_replay_dag,
    build_subject_erasure_dag,
    build_table_rebuild_dag,
    build_table_repair_dag,
    build_table_vacuum_dag,
)

START = datetime(2025, 7, 1, tzinfo=UTC)

shop = build_domain_dag("shop", schedule="0 0 * * *", start_date=START, owner="sales")
maintenance = build_maintenance_dag(schedule="0 3 * * *", start_date=START, owner="platform")
overrides = build_gate_override_dag(owner="platform")
deletes = build_delete_approval_dag(owner="platform")
columns = build_column_approvals_dag(owner="platform")
replays = build_quarantine_replay_dag(owner="platform")
rebuilds = build_table_rebuild_dag(owner="platform")
repairs = build_table_repair_dag(owner="platform")
vacuums = build_table_vacuum_dag(owner="platform")
erasures = build_subject_erasure_dag(owner="platform")

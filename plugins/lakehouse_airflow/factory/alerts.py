"""The DAG that tells people what needs them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, BaseNotifier

from lakehouse_airflow.alerts.operator import LakehouseAlertsOperator

_DOC = """Tells people by mail, chat or pager what needs them: a refused version, a file that was given up, rows that
wait in quarantine for too long, a stale table, an approval, a table with too many files, a wrong spec.

Each cause is told once. A cause that went away and came back is told again. If a notifier fails, the task fails, and
the next run tells it."""


def build_alerts_dag(
    *,
    notifiers: Sequence[BaseNotifier],
    resolved_notifiers: Sequence[BaseNotifier] = (),
    owner: str,
    schedule: str = "*/5 * * * *",
    **dag_arguments: Any,
) -> DAG:
    """Build the DAG with the task that tells.

    Args:
        notifiers: notifiers of any provider; their templates find the message as `alert`.
        resolved_notifiers: those that are also told, once, when the causes of a message are gone: `alert.is_resolved`.
        owner: the owner of the task.
        schedule: how often it looks, as a cron expression in UTC.
        dag_arguments: further arguments of Airflow's `DAG`; they replace those of the factory.
    """
    own: dict[str, Any] = {
        "dag_display_name": "Lakehouse alerts",
        "description": "Tells people what needs them",
        "doc_md": _DOC,
        "catchup": False,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        "tags": ["lakehouse", "alerts"],
        "default_args": {"owner": owner, "execution_timeout": timedelta(minutes=10)},
    }
    with DAG(dag_id="lakehouse_alerts", schedule=schedule, **{**own, **dag_arguments}) as dag:
        LakehouseAlertsOperator(
            task_id="tell", task_display_name="Tell", notifiers=notifiers, resolved_notifiers=resolved_notifiers
        )
    return dag

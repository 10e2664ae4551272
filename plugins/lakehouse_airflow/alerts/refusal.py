"""Tell at once that a gate has refused a version, without waiting for the DAG of alerts."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseNotifier

from lakehouse_airflow.alerts.notifying import tell_refusal

log = logging.getLogger(__name__)


class RefusalAlert:
    """An `on_failure_callback` for the tasks of a domain: it tells of a refused version before the DAG of alerts does.

    It does nothing for a task that is no gate, or whose gate has failed for another reason. What it cannot tell, the
    DAG of alerts tells.

    :param notifiers: the same notifiers as those of the DAG of alerts, in the same order.
    """

    def __init__(self, notifiers: Sequence[BaseNotifier]) -> None:
        self._notifiers = notifiers

    def __call__(self, context: dict[str, Any]) -> None:
        """Tell the notifiers, unless they were told."""
        task = context["task"]
        if getattr(task, "checked", None) is None:
            return
        for alert in tell_refusal(task.checked.table, self._notifiers, context):
            log.info("told: %s", alert.text)

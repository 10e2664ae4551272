"""Tell people that a question waits for their answer, when an approval asks it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from typing import Any

from airflow.sdk import BaseNotifier

from lakehouse_airflow.ui.links import REQUIRED_ACTIONS, airflow_path, url_of, waiting_text
from millrace.alerts.alert import Alert


class ApprovalAlert(BaseNotifier):
    """A notifier of an approval's task: it gives the question to other notifiers, as `alert`.

    A notifier that fails does not keep the question from being asked; the log names it.

    :param notifiers: notifiers of any provider.
    """

    def __init__(self, notifiers: Sequence[BaseNotifier]) -> None:
        super().__init__()
        self._notifiers = notifiers

    def notify(self, context: Any) -> None:
        """Tell the notifiers."""
        task, table = context["task"], str(context["params"].get("table", ""))
        alert = Alert(
            key=hashlib.sha256(waiting_text(context["ti"]).encode()).hexdigest()[:16],
            kind="waits for an answer",
            table=table,
            domain="",
            layer=table.partition(".")[0],
            owner="",
            cause=task.subject,
            action="answer under Required Actions",
            way_out="",
            link=url_of(airflow_path(REQUIRED_ACTIONS)),
        )
        for notifier in self._notifiers:
            try:
                copy.copy(notifier)({**context, "alert": alert})
            except Exception as error:  # noqa: BLE001  the question is asked all the same
                # The text of such an error may have the address of a webhook, which is a secret.
                self.log.error("%s failed (%s): nobody was told", type(notifier).__name__, type(error).__name__)

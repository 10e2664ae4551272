"""The task that tells notifiers what needs a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier, BaseOperator

from lakehouse_airflow.alerts.notifying import tell_all

if TYPE_CHECKING:
    from airflow.sdk import Context


class LakehouseAlertsOperator(BaseOperator):
    """Tell each notifier what needs a person, and nothing twice.

    The context of the notifiers has the message as `alert`; their templates name its attributes (`Alert`).

    :param notifiers: notifiers of any provider.
    :param resolved_notifiers: the notifiers that are told, once, when the causes of a message are gone.
    """

    ui_color = "#f3d9c4"

    def __init__(
        self, *, notifiers: Sequence[BaseNotifier], resolved_notifiers: Sequence[BaseNotifier] = (), **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.notifiers = notifiers
        self.resolved_notifiers = resolved_notifiers

    def execute(self, context: Context) -> int:
        """Return the number of messages.

        Raises:
            AirflowException: a notifier failed, and is told the next time; the others were told.
            SpecError, MillraceError: the lakehouse cannot be read.
        """
        alerts = tell_all(self.notifiers, self.resolved_notifiers, dict(context))
        for alert in alerts:
            self.log.info("told: %s", alert.text)
        if not alerts:
            self.log.info("nothing new needs a person")
        return len(alerts)

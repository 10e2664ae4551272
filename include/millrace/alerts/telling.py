"""Tell what is new to every notifier."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from millrace.alerts.alert import Alert, alert_of, digest_of
from millrace.alerts.down_servers import Cause
from millrace.alerts.open_alerts import Notify, OpenAlert, OpenAlerts
from millrace.alerts.told import DueAlert, ToldAlerts

MOST_MESSAGES = 10
"""If more causes are new at the same time, one message is about all of them."""


@dataclass(frozen=True)
class Links:
    """The addresses of pages: of a table, and of all tables."""

    table: Callable[[str], str]
    all_tables: str


@dataclass(frozen=True)
class Told:
    """What was told.

    Attributes:
        alerts: the messages.
        failures: notifier -> its error; its causes are told the next time.
    """

    alerts: Sequence[Alert]
    failures: Mapping[str, Exception]


def tell(
    items: Sequence[Cause],
    notifiers: Mapping[str, Notify],
    told: ToldAlerts,
    sent: OpenAlerts,
    now: datetime,
    links: Links,
    *,
    forget: bool,
) -> Told:
    """Tell each notifier (name -> function) of the causes that it was not told of yet.

    Args:
        items: the causes that exist now.
        notifiers: name -> the function that sends a message.
        told: knows what was told before.
        sent: remembers the messages until their causes are gone.
        now: the time.
        links: the addresses of pages.
        forget: as in `ToldAlerts.claim`.
    """
    due = told.claim(items, notifiers, now, forget=forget)
    alerts: dict[str, OpenAlert] = {}
    failures: dict[str, Exception] = {}
    successes: dict[str, set[str]] = {}
    try:
        for name, notify in notifiers.items():
            of_notifier = [each for each in due if name in each.notifiers]
            for alert, causes in _messages(of_notifier, links):
                try:
                    notify(alert)
                except Exception as error:  # noqa: BLE001  the other notifiers are told, and this one the next time
                    failures[name] = error
                else:
                    names = tuple(name for each in causes for name in each.item.names)
                    alerts[alert.key] = OpenAlert(alert=alert, causes=names)
                    for each in causes:
                        successes.setdefault(each.item.names[0], set()).add(name)
    finally:
        sent.add(alerts)
        told.settle((each, successes.get(each.item.names[0], ())) for each in due)
    return Told(tuple(each.alert for each in alerts.values()), failures)


def _messages(due: Sequence[DueAlert], links: Links) -> list[tuple[Alert, Sequence[DueAlert]]]:
    """Return each message with the causes that it is about."""
    if len(due) > MOST_MESSAGES:
        return [(digest_of([each.item for each in due], links.all_tables), due)]
    return [(alert_of(each.item, links.table, links.all_tables), [each]) for each in due]

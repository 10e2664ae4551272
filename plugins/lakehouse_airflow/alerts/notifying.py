"""Send messages by notifiers of Airflow, and find what there is to tell."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseNotifier
from airflow.sdk.exceptions import AirflowException

from lakehouse_airflow.hooks.store_access import prepare_process
from lakehouse_airflow.ui.links import lakehouse_path, table_path, url_of

if TYPE_CHECKING:
    from millrace.alerts.alert import Alert
    from millrace.alerts.down_servers import Cause
    from millrace.alerts.telling import Told


def tell_all(
    notifiers: Sequence[BaseNotifier], resolved_notifiers: Sequence[BaseNotifier], context: Mapping[str, Any]
) -> Sequence[Alert]:
    """Tell the notifiers of every cause that needs a person, and others of causes that are gone; return the former.

    Raises:
        AirflowException: a notifier failed; it is told the next time, and the others were told.
        SpecError, MillraceError: the lakehouse cannot be read.
    """
    # Imported here: parsing a DAG file must not load the Delta reader.
    from millrace.alerts.down_servers import DownServers
    from millrace.alerts.open_alerts import OpenAlerts, tell_resolved
    from millrace.clock import utc_now
    from millrace.overview.attention import attention_needed
    from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks

    settings, now = prepare_process(), utc_now()
    tables = LakehouseReader(settings.paths, settings.tables).read(now, no_failed_tasks)
    items: list[Cause] = [*DownServers(settings.paths).at(now), *attention_needed(tables, now)]
    told = _tell(items, notifiers, context, forget=True)
    failures = tell_resolved(items, _senders(resolved_notifiers, context), OpenAlerts(settings.paths), now)
    return _alerts_of(told, failures)


def tell_refusal(table: str, notifiers: Sequence[BaseNotifier], context: Mapping[str, Any]) -> Sequence[Alert]:
    """Tell the notifiers that the gate has refused a version of a table, unless that was told; as `tell_all`."""
    from millrace.clock import utc_now
    from millrace.overview.attention import Trouble, attention_needed
    from millrace.overview.lakehouse import LakehouseReader, no_failed_tasks

    settings, now = prepare_process(), utc_now()
    overview = LakehouseReader(settings.paths, settings.tables).read_table(table, now, no_failed_tasks)
    items = attention_needed([overview] if overview else [], now)
    return _alerts_of(_tell([item for item in items if item.kind is Trouble.REFUSED], notifiers, context, forget=False))


def _tell(
    items: Sequence[Cause], notifiers: Sequence[BaseNotifier], context: Mapping[str, Any], *, forget: bool
) -> Told:
    from millrace.alerts.open_alerts import OpenAlerts
    from millrace.alerts.telling import Links, tell
    from millrace.alerts.told import ToldAlerts
    from millrace.clock import utc_now

    links = Links(lambda table: url_of(table_path(table)), url_of(lakehouse_path("tables")))
    paths, senders = prepare_process().paths, _senders(notifiers, context)
    return tell(items, senders, ToldAlerts(paths), OpenAlerts(paths), utc_now(), links, forget=forget)


def _alerts_of(told: Told, further_failures: Mapping[str, Exception] = {}) -> Sequence[Alert]:
    """Return the messages; raise if a notifier has failed."""
    if failures := {**told.failures, **further_failures}:
        # The text of such an error may have the address of a webhook, which is a secret.
        errors = ", ".join(f"{name} ({type(error).__name__})" for name, error in failures.items())
        raise AirflowException(f"not every alert was sent: {errors} failed\nIt is told the next time.")
    return told.alerts


def _senders(notifiers: Sequence[BaseNotifier], context: Mapping[str, Any]) -> dict[str, Any]:
    """Return name of a notifier -> the function that sends a message by it."""

    def sender(notifier: BaseNotifier) -> Any:
        # A notifier renders its own attributes, once: each message needs a copy.
        return lambda alert: copy.copy(notifier)({**context, "alert": alert})

    return {name: sender(notifier) for name, notifier in _named(notifiers).items()}


def _named(notifiers: Sequence[BaseNotifier]) -> dict[str, BaseNotifier]:
    """Return name -> notifier: its class, and a number for a second one of the class."""
    seen: Counter[str] = Counter()
    named = {}
    for notifier in notifiers:
        name = type(notifier).__name__
        seen[name] += 1
        named[name if seen[name] == 1 else f"{name} {seen[name]}"] = notifier
    return named

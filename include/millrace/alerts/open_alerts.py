"""The messages whose causes are not gone yet: when they are, the notifiers that want to know are told once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from millrace.alerts.alert import Alert
from millrace.alerts.down_servers import Cause
from millrace.alerts.shared_object import SharedObject
from millrace.alerts.told import is_claimed
from millrace.contracts.interval import Instant
from millrace.overview.attention import Trouble
from millrace.paths import LakehousePaths

Notify = Callable[[Alert], None]


class OpenAlert(BaseModel):
    """A message that was sent.

    Attributes:
        alert: the message.
        causes: the names of its causes; it is resolved when all of them are gone.
        told: the notifiers that were told that it is resolved.
        claimed_at: when a process began to tell that; None if no process does.
    """

    model_config = ConfigDict(frozen=True)

    alert: Alert
    causes: tuple[str, ...]
    told: tuple[str, ...] = ()
    claimed_at: Instant | None = None


class OpenAlerts:
    """Reads and changes the messages of one lakehouse that are not resolved, by their keys."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._open = SharedObject(paths, "open")

    def add(self, sent: Mapping[str, OpenAlert]) -> None:
        """Add messages (key -> message) that were sent."""
        if sent:
            self._open.change(OpenAlert, lambda stored: {**stored, **sent})

    def claim(self, items: Sequence[Cause], now: datetime) -> list[OpenAlert]:
        """Return the messages whose causes are all gone; until `settle`, no other process gets them.

        Args:
            items: all causes of the lakehouse. A table with a wrong spec has that cause alone: nobody knows of others.
            now: the time.
        """
        names = {name for item in items for name in item.names}
        unknown = {item.table.table for item in items if item.table and item.kind == Trouble.WRONG_SPEC}
        due: dict[str, OpenAlert] = {}

        def claimed(stored: dict[str, OpenAlert]) -> dict[str, OpenAlert]:
            due.clear()
            for key, sent in stored.items():
                is_gone = sent.alert.kind == Trouble.WRONG_SPEC or sent.alert.table not in unknown
                if is_gone and not is_claimed(sent.claimed_at, now) and not names & set(sent.causes):
                    due[key] = sent
            return stored | {key: sent.model_copy(update={"claimed_at": now}) for key, sent in due.items()}

        self._open.change(OpenAlert, claimed)
        return list(due.values())

    def settle(self, results: Iterable[OpenAlert], notifiers: Collection[str]) -> None:
        """End the claims of messages, each with the notifiers that were told; forget it when all of them were."""
        ended = {sent.alert.key: sent.model_copy(update={"claimed_at": None}) for sent in results}
        done = {key for key, sent in ended.items() if set(notifiers) <= set(sent.told)}

        def settled(stored: dict[str, OpenAlert]) -> dict[str, OpenAlert]:
            return {key: ended.get(key, sent) for key, sent in stored.items() if key not in done}

        self._open.change(OpenAlert, settled)


def tell_resolved(
    items: Sequence[Cause], notifiers: Mapping[str, Notify], alerts: OpenAlerts, now: datetime
) -> dict[str, Exception]:
    """Tell each notifier (name -> function) once that the causes of a message are gone.

    Returns:
        Notifier -> its error; it is told the next time.
    """
    failures: dict[str, Exception] = {}
    results = []
    due = alerts.claim(items, now)
    for sent in due:
        told = list(sent.told)
        for name in notifiers.keys() - set(told):
            try:
                notifiers[name](replace(sent.alert, is_resolved=True))
            except Exception as error:  # noqa: BLE001  the other notifiers are told, and this one the next time
                failures[name] = error
            else:
                told.append(name)
        results.append(sent.model_copy(update={"told": tuple(told)}))
    if due:
        alerts.settle(results, notifiers)
    return failures

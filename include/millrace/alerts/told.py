"""Which notifier was told of which cause: one small object per lakehouse, changed by conditional puts.

A cause is claimed before it is told, so that two processes never tell it at the same time. Whoever cannot tell it gives
the claim back. If a process dies in between, its claim ends after some minutes, and the cause is told again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

from millrace.alerts.down_servers import Cause
from millrace.alerts.shared_object import SharedObject
from millrace.contracts.interval import Instant
from millrace.paths import LakehousePaths

CLAIM_FOR = timedelta(minutes=10)
"""A claim of a process that has died ends after this time; at once if its clock was further ahead."""


def is_claimed(at: datetime | None, now: datetime) -> bool:
    """Whether a claim of this time is in force."""
    return at is not None and abs(now - at) < CLAIM_FOR


class ToldCause(BaseModel):
    """What was told about a cause.

    Attributes:
        told: the notifiers that were told.
        claimed_at: when a process began to tell it; None if no process does.
    """

    model_config = ConfigDict(frozen=True)

    told: tuple[str, ...] = ()
    claimed_at: Instant | None = None


Causes = dict[str, ToldCause]
"""Name of a cause -> what was told about it."""


@dataclass(frozen=True)
class DueAlert:
    """A cause that this process has claimed, with the notifiers that were not told of it yet."""

    item: Cause
    notifiers: tuple[str, ...]


class ToldAlerts:
    """Reads and changes the object of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._causes = SharedObject(paths, "told")

    def claim(
        self, items: Sequence[Cause], notifiers: Collection[str], now: datetime, *, forget: bool
    ) -> list[DueAlert]:
        """Return the causes that some notifiers were not told of; until `settle`, no other process gets them.

        Args:
            items: the causes that exist now.
            notifiers: the names of all notifiers.
            now: the time.
            forget: whether these are all causes of the lakehouse: what was told about others is then forgotten, so that
                a cause that comes back is told again.

        Raises:
            ConflictError: other processes were first a hundred times.
        """
        due: list[DueAlert] = []

        def claimed(causes: Causes) -> Causes:
            names = {name for item in items for name in item.names}
            kept = {name: cause for name, cause in causes.items() if name in names or not forget}
            due[:] = [each for item in items if (each := _due(item, notifiers, kept, now))]
            return kept | {
                name: kept.get(name, ToldCause()).model_copy(update={"claimed_at": now})
                for each in due
                for name in each.item.names
            }

        self._causes.change(ToldCause, claimed)
        return due

    def settle(self, results: Iterable[tuple[DueAlert, Collection[str]]]) -> None:
        """End the claims of causes, each with the notifiers that were told now.

        Raises:
            ConflictError: as `claim`.
        """
        new = [(name, told) for due, told in results for name in due.item.names]

        def settled(causes: Causes) -> Causes:
            after = dict(causes)
            for name, told in new:
                before = after.get(name, ToldCause()).told
                after[name] = ToldCause(told=tuple(dict.fromkeys((*before, *told))))
            return after

        self._causes.change(ToldCause, settled)


def _due(item: Cause, notifiers: Collection[str], causes: Mapping[str, ToldCause], now: datetime) -> DueAlert | None:
    """Return the cause if a notifier was not told of it and no other process is about to do so."""
    known = [causes.get(name, ToldCause()) for name in item.names]
    missing = tuple(name for name in notifiers if any(name not in cause.told for cause in known))
    claimed = any(is_claimed(cause.claimed_at, now) for cause in known)
    return DueAlert(item, missing) if missing and not claimed else None

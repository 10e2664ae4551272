"""Which notifier was told of which cause: one small object per lakehouse, changed by conditional puts.

A cause is claimed before it is told, so that two processes never tell it at the same time. Whoever cannot tell it gives
the claim back. If a process dies in between, its claim ends after some minutes, and the cause is told again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from tenacity import retry, retry_if_result, stop_after_attempt, wait_random

from include.contracts.interval import Instant
from include.control.leases.store import ledger_lease
from include.control.storage.objects_on_s3 import object_store
from include.errors import ConflictError
from include.overview.attention import Attention
from include.paths import LakehousePaths

CLAIM_FOR = timedelta(minutes=10)
"""A claim of a process that has died ends after this time."""

_KEY = "told"


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

_CAUSES = TypeAdapter(Causes)


@dataclass(frozen=True)
class DueAlert:
    """A cause that this process has claimed, with the notifiers that were not told of it yet."""

    item: Attention
    notifiers: tuple[str, ...]


class ToldAlerts:
    """Reads and changes the object of one lakehouse."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._folder = paths.alerts
        self._lease_store = paths.lease_store
        self._objects = object_store(paths.alerts)

    def claim(
        self, items: Sequence[Attention], notifiers: Collection[str], now: datetime, *, forget: bool
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

        self._change(claimed)
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

        self._change(settled)

    def _change(self, change: Callable[[Causes], Causes]) -> None:
        with ledger_lease(self._folder, self._lease_store):
            if not self._try_change(change):
                raise ConflictError(
                    f"{self._folder}: other processes changed the told alerts each time",
                    "Run this again. If it comes again, the store of the lakehouse takes no conditional puts.",
                )

    @retry(
        retry=retry_if_result(lambda is_done: not is_done),
        wait=wait_random(0, 0.05),
        stop=stop_after_attempt(100),
        retry_error_callback=lambda _: False,
    )
    def _try_change(self, change: Callable[[Causes], Causes]) -> bool:
        stored = self._objects.get(_KEY)
        before = _causes(stored.body) if stored else {}
        after = change(before)
        if after == before:
            return True
        body = json.dumps({name: cause.model_dump(mode="json") for name, cause in after.items()}).encode()
        return bool(
            self._objects.put_if_match(_KEY, body, stored.etag) if stored else self._objects.put_if_absent(_KEY, body)
        )


def _due(
    item: Attention, notifiers: Collection[str], causes: Mapping[str, ToldCause], now: datetime
) -> DueAlert | None:
    """Return the cause if a notifier was not told of it and no other process is about to do so."""
    known = [causes.get(name, ToldCause()) for name in item.names]
    missing = tuple(name for name in notifiers if any(name not in cause.told for cause in known))
    is_claimed = any(cause.claimed_at and now - cause.claimed_at < CLAIM_FOR for cause in known)
    return DueAlert(item, missing) if missing and not is_claimed else None


def _causes(body: bytes) -> Causes:
    try:
        return _CAUSES.validate_json(body)
    except ValidationError:
        return {}  # A power loss has cut the object: causes are rather told twice than never.

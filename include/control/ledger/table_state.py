"""The current state of each table: one small object beside the history, which commands read in one step (ADR 25).

`_millrace/state/<table>` holds some parts, each of which one module keeps. A part is never the truth: it follows from
the table's log and from the events of `ops`, and is worked out from them where it is missing or of another table. What
it says is true of some moment: whoever is about to write an event that the part would not miss takes the part out
first, so that a crash between history and state leaves no state rather than a wrong one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import RetryCallState, retry, retry_if_result, stop_after_attempt, wait_random

from include.contracts.lake_path import S3Path
from include.control.leases.store import ledger_lease
from include.control.storage.looks import look_again, note_object, seen_object
from include.control.storage.objects_on_s3 import object_store
from include.errors import ConflictError, first_line
from include.paths import LakehousePaths

log = logging.getLogger(__name__)


class StatePart(BaseModel):
    """What one module keeps of a table.

    Attributes:
        table_id: Delta's id of the table that it is about.
    """

    model_config = ConfigDict(frozen=True)

    table_id: str


Part = TypeVar("Part", bound=StatePart)

Change: TypeAlias = tuple[type[StatePart], Callable[[Any], StatePart | None]]
"""A kind of part, and what makes the new one of the one that is kept."""


def _give_up(state: RetryCallState) -> bool:
    raise ConflictError(
        f"{state.args[1]}: others changed its state {state.attempt_number} times meanwhile",
        "Run this again. If it comes again, the store of the lakehouse takes no conditional puts.",
    )


_when_another_writer_won = retry(
    retry=retry_if_result(lambda is_done: not is_done),
    wait=wait_random(0, 0.02),
    stop=stop_after_attempt(100),
    retry_error_callback=_give_up,
)


@dataclass(frozen=True)
class _Stored:
    """The parts of a state, and the etag of their object; empty where there is none."""

    parts: dict[str, Any]
    etag: str


class TableStates:
    """Reads and writes the states of one lakehouse's tables."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._folder = paths.state
        self._lease_store = paths.lease_store
        self._objects = object_store(paths.state)

    def read(self, table: str, kind: type[Part]) -> Part | None:
        """A part of the table's state; None where it is not known."""
        return _part(self._stored(table).parts, kind)

    def change(self, table: str, *changes: Change) -> None:
        """Replace parts by what is made of them, in one step; the other parts stay as others have put them.

        Args:
            table: the table.
            changes: for each part its kind, and what makes the new one of the one that is kept; None takes it out.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        with ledger_lease(self._folder, self._lease_store):
            self._changed(table, changes)

    def forget(self, table: str) -> None:
        """Take out all parts of the table's state: its events are about to be others.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        with ledger_lease(self._folder, self._lease_store):
            self._taken_out(table)

    @_when_another_writer_won
    def _taken_out(self, table: str) -> bool:
        look_again()
        stored = self._stored(table)
        return not stored.etag or self._objects.delete_if_match(table, stored.etag)

    @_when_another_writer_won
    def _changed(self, table: str, changes: Sequence[Change]) -> bool:
        stored = self._stored(table)
        parts = dict(stored.parts)
        for kind, change in changes:
            parts.pop(kind.__name__, None)
            if (after := change(_part(stored.parts, kind))) is not None:
                parts[kind.__name__] = after.model_dump(mode="json")
        return parts == stored.parts or self._put(table, parts, stored.etag)

    def _stored(self, table: str) -> _Stored:
        def look() -> _Stored:
            found = self._objects.get(table)
            return _Stored(_parts(found.body), found.etag) if found else _Stored({}, "")

        file = self._folder / table
        return seen_object(_Stored, file, look) if isinstance(file, S3Path) else look()

    def _put(self, table: str, parts: dict[str, Any], etag: str) -> bool:
        body, file = json.dumps(parts).encode(), self._folder / table
        new = self._objects.put_if_match(table, body, etag) if etag else self._objects.put_if_absent(table, body)
        if new and isinstance(file, S3Path):
            note_object(_Stored, file, _Stored(parts, new))
        return bool(new)


@contextmanager
def failing_without_harm(table: str) -> Iterator[None]:
    """Around puts of parts that may be missing or behind: a batch does not fail for one of them."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  whatever is in the way: history and log say the same
        log.warning("%s: its state is worked out again by its next reader: %s", table, first_line(error))


def _parts(body: bytes) -> dict[str, Any]:
    """The parts of an object; none of one that a power loss cut: they are worked out again."""
    try:
        found = json.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _part(parts: dict[str, Any], kind: type[Part]) -> Part | None:
    try:
        return kind.model_validate(parts[kind.__name__]) if kind.__name__ in parts else None
    except ValidationError:
        return None  # of an earlier or a later version of Millrace

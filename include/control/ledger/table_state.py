"""The current state of each table: one small object beside the history, which commands read in one step (ADR 25).

`_millrace/state/<table>` holds some parts, each of which one module keeps. A part is never the truth: it follows from
the table's log and from the events of `ops`, and is worked out from them where it is missing or of another table. What
it says is true of some moment: whoever is about to write an event that the part would not miss takes the part out
first, so that a crash between history and state leaves no state rather than a wrong one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import RetryCallState, retry, retry_if_result, stop_after_attempt, wait_random

from include.control.leases.store import ledger_lease
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


class TableStates:
    """Reads and writes the states of one lakehouse's tables."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._folder = paths.state
        self._objects = object_store(paths.state)

    def read(self, table: str, kind: type[Part]) -> Part | None:
        """A part of the table's state; None where it is not known."""
        found = self._objects.get(table)
        return _part(_parts(found.body), kind) if found else None

    def change(self, table: str, kind: type[Part], change: Callable[[Part | None], Part | None]) -> None:
        """Replace a part by what `change` makes of it, in one step; the other parts stay as others have put them.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        with ledger_lease(self._folder):
            self._changed(table, kind, change)

    def forget(self, table: str) -> None:
        """Take out all parts of the table's state: its events are about to be others.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        with ledger_lease(self._folder):
            self._taken_out(table)

    @_when_another_writer_won
    def _taken_out(self, table: str) -> bool:
        found = self._objects.get(table)
        return found is None or self._objects.delete_if_match(table, found.etag)

    @_when_another_writer_won
    def _changed(self, table: str, kind: type[Part], change: Callable[[Part | None], Part | None]) -> bool:
        found = self._objects.get(table)
        parts = _parts(found.body) if found else {}
        before = _part(parts, kind)
        after = change(before)
        if after == before and (after is not None or kind.__name__ not in parts):
            return True
        kept = {name: part for name, part in parts.items() if name != kind.__name__}
        body = json.dumps(kept | ({kind.__name__: after.model_dump(mode="json")} if after else {})).encode()
        if found is None:
            return self._objects.put_if_absent(table, body)
        return self._objects.put_if_match(table, body, found.etag)


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

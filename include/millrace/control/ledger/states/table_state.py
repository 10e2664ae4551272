"""The state of each table: a small object that repeats the newest facts, so that commands need one read (ADR 25).

`_millrace/state/<table>` has several parts; each belongs to one module. A part follows from the table's log and from
the events of `ops`: if it is missing or belongs to an earlier table, it is computed from them. A part may be older than
the history, but never wrong: before an event that contradicts a part, the writer removes the part. After a crash
between the two, the state is therefore missing.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from tenacity import RetryCallState, retry, retry_if_result, stop_after_attempt, wait_random

from millrace.control.storage.json_lines import json_object
from millrace.control.storage.objects_on_s3 import object_store
from millrace.control.storage.read_cache import cache_object, cached_object
from millrace.errors import ConflictError, first_line
from millrace.paths import LakehousePaths

log = logging.getLogger(__name__)


class StatePart(BaseModel):
    """A module's part of a table's state.

    Attributes:
        table_id: the Delta table id.
    """

    model_config = ConfigDict(frozen=True)

    table_id: str


Part = TypeVar("Part", bound=StatePart)

PartChange: TypeAlias = tuple[type[StatePart], Callable[[Any], StatePart | None]]
"""A kind of part, and the function that returns the new part for the stored one."""


def _give_up(state: RetryCallState) -> bool:
    raise ConflictError(
        f"{state.args[1]}: other writers changed its state {state.attempt_number} times in the meantime",
        "Run this again. If it comes again, the store of the lakehouse takes no conditional puts.",
    )


_retry_after_conflict = retry(
    retry=retry_if_result(lambda is_done: not is_done),
    wait=wait_random(0, 0.02),
    stop=stop_after_attempt(100),
    retry_error_callback=_give_up,
)


class TableState:
    """The parts of a table's state, as they were read; each part is parsed once.

    >>> TableState({}).part(StatePart) is None
    True
    """

    def __init__(self, parts: Mapping[str, Any]) -> None:
        self._parts = parts
        self._parsed: dict[type[StatePart], StatePart | None] = {}

    def part(self, kind: type[Part]) -> Part | None:
        """Return a part; None if it is missing."""
        if kind not in self._parsed:
            self._parsed[kind] = _part(self._parts, kind)
        return cast(Part | None, self._parsed[kind])


@dataclass(frozen=True)
class _Stored:
    """The parts of a state, and the etag of their object; empty if there is no object."""

    parts: dict[str, Any]
    etag: str


class TableStates:
    """Reads and writes the states of one lakehouse's tables.

    A change starts from the state that this process read or put last. If another process has changed it since, the
    conditional put fails, and the state is read again.
    """

    def __init__(self, paths: LakehousePaths) -> None:
        self._folder = paths.state
        self._objects = object_store(paths.state)
        self._known: dict[str, _Stored] = {}

    def read(self, table: str, kind: type[Part]) -> Part | None:
        """Return a part of the table's state; None if it is missing."""
        self._known[table] = stored = cached_object(self._folder / table, partial(self._stored, table))
        return _part(stored.parts, kind)

    def change(self, table: str, *changes: PartChange) -> None:
        """Replace some parts of the table's state in one step; all other parts stay, and None removes a part.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        self._try_change(table, changes)

    def delete(self, table: str) -> None:
        """Delete the table's state, before its events are replaced.

        Raises:
            ConflictError: other writers were first a hundred times.
        """
        self._try_delete(table)

    @_retry_after_conflict
    def _try_delete(self, table: str) -> bool:
        stored = self._stored(table)
        return not stored.etag or self._objects.delete_if_match(table, stored.etag)

    @_retry_after_conflict
    def _try_change(self, table: str, changes: Sequence[PartChange]) -> bool:
        known = self._known.pop(table, None)
        stored = known or self._stored(table)
        parts = _changed(stored.parts, changes)
        if known and parts == stored.parts:  # The known state may be outdated: only the newest one may stay.
            stored = self._stored(table)
            parts = _changed(stored.parts, changes)
        etag = stored.etag if parts == stored.parts else self._put(table, parts, stored.etag)
        is_done = bool(etag) or parts == stored.parts
        if is_done:
            self._known[table] = _Stored(parts, etag)
        return is_done

    def _put(self, table: str, parts: dict[str, Any], old: str) -> str:
        """Put the state if its etag is still `old`, and return the new etag; empty if another writer was first."""
        body = json.dumps(parts).encode()
        etag = self._objects.put_if_match(table, body, old) if old else self._objects.put_if_absent(table, body)
        if etag:
            cache_object(self._folder / table, _Stored(parts, etag))
        return etag

    def _stored(self, table: str) -> _Stored:
        stored = self._objects.get(table)
        # A power loss may have cut the object.
        return _Stored(json_object(stored.body), stored.etag) if stored else _Stored({}, "")


@contextmanager
def tolerate_state_errors(table: str) -> Iterator[None]:
    """Log an error of a state that may be missing or old, instead of failing the batch."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  the ledger and the log have the same facts
        log.warning("%s: its next reader computes its state again: %s", table, first_line(error))


def _changed(before: dict[str, Any], changes: Sequence[PartChange]) -> dict[str, Any]:
    """Return the parts after some changes."""
    parts = dict(before)
    for kind, change in changes:
        parts.pop(kind.__name__, None)
        if (after := change(_part(before, kind))) is not None:
            parts[kind.__name__] = after.model_dump(mode="json", exclude_defaults=True)
    return parts


def _part(parts: Mapping[str, Any], kind: type[Part]) -> Part | None:
    try:
        return kind.model_validate(parts[kind.__name__]) if kind.__name__ in parts else None
    except ValidationError:
        return None  # another version of Millrace wrote it


_PARALLEL = 16
"""The number of states that are read at the same time: a bucket answers each after some milliseconds."""


class AllStates:
    """Reads the states of all tables: one listing each time, and only the states that have changed since."""

    def __init__(self, paths: LakehousePaths) -> None:
        self._objects = object_store(paths.state)
        self._marks: dict[str, str] = {}
        self._states: dict[str, TableState] = {}

    def read_one(self, table: str) -> TableState:
        """Return the state of one table; a table without a state has no part."""
        stored = self._objects.get(table)
        return TableState(json_object(stored.body) if stored else {})

    def read(self) -> Mapping[str, TableState]:
        """Return table -> its state; a table without a state is missing."""
        marks = self._objects.marks()
        changed = [table for table, mark in marks.items() if self._marks.get(table) != mark]
        # Each thread reads with the access to the store that this one has.
        contexts = [copy_context() for _ in changed]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            stored_objects = pool.map(lambda context, table: context.run(self._objects.get, table), contexts, changed)
            read = dict(zip(changed, stored_objects, strict=True))
        new = {table: TableState(json_object(stored.body)) for table, stored in read.items() if stored}
        self._states = {table: state for table, state in {**self._states, **new}.items() if table in marks}
        self._marks = marks
        return self._states

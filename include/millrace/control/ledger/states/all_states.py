"""The states of all tables of a lakehouse, for a process that shows all of them again and again."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

from millrace.control.ledger.states.table_state import TableState
from millrace.control.storage.json_lines import json_object
from millrace.control.storage.objects_on_s3 import object_store
from millrace.paths import LakehousePaths

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

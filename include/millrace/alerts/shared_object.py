"""A small object of the lakehouse that several processes change by conditional puts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from tenacity import retry, retry_if_result, stop_after_attempt, wait_random

from millrace.control.storage.objects_on_s3 import object_store
from millrace.errors import ConflictError
from millrace.paths import LakehousePaths

Entry = TypeVar("Entry", bound=BaseModel)


class SharedObject:
    """The object `_millrace/alerts/<name>` of one lakehouse: a JSON object with an entry for each name."""

    def __init__(self, paths: LakehousePaths, name: str) -> None:
        self._folder = paths.alerts
        self._objects = object_store(paths.alerts)
        self._name = name

    def read(self, kind: type[Entry]) -> dict[str, Entry]:
        """Return the entries; none if there is no such object."""
        stored = self._objects.get(self._name)
        return _read(TypeAdapter(dict[str, kind]), stored.body) if stored else {}  # type: ignore[valid-type]

    def change(self, kind: type[Entry], change: Callable[[dict[str, Entry]], dict[str, Entry]]) -> None:
        """Replace the entries by what `change` returns for them; it may be called several times.

        Raises:
            ConflictError: other processes were first a hundred times.
        """
        if not self._try_change(TypeAdapter(dict[str, kind]), change):  # type: ignore[valid-type]
            raise ConflictError(
                f"{self._folder}: other processes changed {self._name} each time",
                "Run this again. If it comes again, the store of the lakehouse takes no conditional puts.",
            )

    @retry(
        retry=retry_if_result(lambda is_done: not is_done),
        wait=wait_random(0, 0.05),
        stop=stop_after_attempt(100),
        retry_error_callback=lambda _: False,
    )
    def _try_change(
        self, entries: TypeAdapter[dict[str, Entry]], change: Callable[[dict[str, Entry]], dict[str, Entry]]
    ) -> bool:
        stored = self._objects.get(self._name)
        before = _read(entries, stored.body) if stored else {}
        after = change(before)
        if after == before:
            return True
        body = entries.dump_json(after)
        if stored is None:
            return bool(self._objects.put_if_absent(self._name, body))
        return bool(self._objects.put_if_match(self._name, body, stored.etag))


def _read(entries: TypeAdapter[dict[str, Entry]], body: bytes) -> dict[str, Entry]:
    try:
        return entries.validate_json(body)
    except ValidationError:
        return {}  # A power loss has cut the object: causes are rather told twice than never.

"""A log folder that Python writes and reads through a log store of Delta or Millrace."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from py4j.java_gateway import JavaGateway


class Log:
    """One log folder and one log store.

    Args:
        java: the Java process in which the store runs.
        store: class name of the log store.
        folder: URI of the log folder.
        settings: Hadoop settings.
    """

    def __init__(self, java: JavaGateway, store: str, folder: str, settings: dict[str, str] | None = None) -> None:
        self.java = java
        self.folder = folder
        self._conf = java.jvm.org.apache.hadoop.conf.Configuration()
        for key, value in (settings or {}).items():
            self._conf.set(key, value)
        self._store = reduce(getattr, store.split("."), java.jvm)(self._conf)

    def write(self, name: str, lines: Sequence[str | int], *, overwrite: bool = False) -> None:
        """Write one file of the log. An item that is no string fails midway, as an action of Delta may."""
        actions = self.java.jvm.java.util.ArrayList()
        for line in lines:
            actions.add(line)
        self._store.write(self._path(name), actions.iterator(), overwrite, self._conf)

    def read(self, name: str) -> list[str]:
        """Return the lines of one file; Hadoop checks it against its hidden checksum file, if there is one."""
        lines = self._store.read(self._path(name), self._conf)
        try:
            return _items(lines)
        finally:
            lines.close()

    def names_from(self, name: str) -> list[str]:
        """Return the files of the log from `name` on, as Delta lists them."""
        return [status.getPath().getName() for status in _items(self._store.listFrom(self._path(name), self._conf))]

    def _path(self, name: str) -> Any:
        return self.java.jvm.org.apache.hadoop.fs.Path(self.java.jvm.org.apache.hadoop.fs.Path(self.folder), name)


def _items(iterator: Any) -> list[Any]:
    items = []
    while iterator.hasNext():
        items.append(iterator.next())
    return items

"""The catalog in a process that lives for long: the specs are read again only after a file has changed."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from millrace.catalog import Catalog, load_catalog


class KnownCatalog:
    """Reads the specs of a folder; a thousand of them take seconds, but only once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, tuple[int, int]] | None = None
        self._catalog = Catalog({})

    def read(self) -> Catalog:
        """Return the catalog of the files as they are now.

        Raises:
            SpecError: there is no such folder.
        """
        files = _stamps(self._folder)
        if files != self._files:
            self._catalog, self._files = load_catalog(self._folder), files
        return self._catalog


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return path -> (modification time, size) of every file in the folder that can be opened."""
    stamps = {}
    for parent, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(parent, name)
            # A file may be gone by now, and the lock of an editor is a link to nothing.
            with suppress(FileNotFoundError):
                stat = os.stat(path)
                stamps[path] = (stat.st_mtime_ns, stat.st_size)
    return stamps

"""The rights of other users of the machine."""

from __future__ import annotations

import stat
from pathlib import Path


def open_to_others(folder: Path) -> list[str]:
    """Return what is in a folder, and the folder itself, that other users may read, write or enter."""
    found = {path: path.lstat().st_mode for path in (folder, *folder.rglob("*"))}
    return sorted(str(path) for path, mode in found.items() if mode & stat.S_IRWXO and not stat.S_ISLNK(mode))

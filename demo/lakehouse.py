"""The demo's lakehouse: a folder that the demo made itself, and that is empty at each start."""

from __future__ import annotations

import shutil
from pathlib import Path

from millrace.contracts.lake_path import LakePath

MARK = "MADE_BY_THE_DEMO"
_ELSEWHERE = "LAKEHOUSE_ROOT=data/demo make demo"
MARK_TEXT = "`make demo` made this folder, and deletes it when it starts again. Delete this file to keep the folder.\n"


class NotTheDemosError(Exception):
    """Raised when the lakehouse has tables that the demo did not make; the message says what to do."""


def start_empty(root: LakePath) -> bool:
    """Make `root` an empty lakehouse; return whether this deleted the tables of an earlier demo.

    Raises:
        NotTheDemosError: `root` is not empty and not made by the demo; or it is not a folder.
    """
    if not isinstance(root, Path):
        raise NotTheDemosError(f"The demo makes its lakehouse in a folder, not at {root}: {_ELSEWHERE}")
    had_tables = root.exists() and any(root.iterdir())
    if had_tables and not (root / MARK).exists():
        msg = (
            f"{root} has tables that the demo did not make, and the demo starts with an empty lakehouse. "
            f"Run it elsewhere: {_ELSEWHERE}"
        )
        raise NotTheDemosError(msg)
    if had_tables:
        shutil.rmtree(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text(MARK_TEXT)
    return had_tables

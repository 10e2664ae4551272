"""The demo's lakehouse: empty at every start, and only ever a folder that the demo itself made."""

from __future__ import annotations

import shutil
from pathlib import Path

MARK = "MADE_BY_THE_DEMO"
MARK_TEXT = "`make demo` made this folder, and deletes it when it starts again. Delete this file to keep the folder.\n"


class NotTheDemosError(Exception):
    """Raised when the lakehouse holds tables that the demo did not make; the message says how to go on."""


def start_empty(root: Path) -> bool:
    """Make `root` an empty lakehouse; returns whether an earlier demo's tables were deleted for that.

    Raises:
        NotTheDemosError: it holds something, and the demo did not make it.
    """
    held = root.exists() and any(root.iterdir())
    if held and not (root / MARK).exists():
        msg = (
            f"{root} holds tables that the demo did not make, and the demo starts with an empty lakehouse. "
            "Run it elsewhere: LAKEHOUSE_ROOT=data/demo make demo"
        )
        raise NotTheDemosError(msg)
    if held:
        shutil.rmtree(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text(MARK_TEXT)
    return held

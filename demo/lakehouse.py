"""The demo's lakehouse: empty at every start, and only ever a folder that the demo itself made."""

from __future__ import annotations

import shutil
from pathlib import Path

from include.contracts.lake_path import LakePath

MARK = "MADE_BY_THE_DEMO"
_ELSEWHERE = "LAKEHOUSE_ROOT=data/demo make demo"
MARK_TEXT = "`make demo` made this folder, and deletes it when it starts again. Delete this file to keep the folder.\n"


class NotTheDemosError(Exception):
    """Raised when the lakehouse holds tables that the demo did not make; the message says how to go on."""


def start_empty(root: LakePath) -> bool:
    """Make `root` an empty lakehouse; returns whether an earlier demo's tables were deleted for that.

    Raises:
        NotTheDemosError: it holds something, and the demo did not make it; or it is no folder.
    """
    if not isinstance(root, Path):
        raise NotTheDemosError(f"The demo makes its lakehouse in a folder, not at {root}: {_ELSEWHERE}")
    held = root.exists() and any(root.iterdir())
    if held and not (root / MARK).exists():
        msg = (
            f"{root} holds tables that the demo did not make, and the demo starts with an empty lakehouse. "
            f"Run it elsewhere: {_ELSEWHERE}"
        )
        raise NotTheDemosError(msg)
    if held:
        shutil.rmtree(root)
    root.mkdir(parents=True, exist_ok=True)
    (root / MARK).write_text(MARK_TEXT)
    return held

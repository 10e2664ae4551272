"""What tells a commit from every other one at its version: of another table at the same path, or of a log put back."""

from __future__ import annotations

import hashlib

from include.contracts.lake_path import LakePath
from include.control.log.delta_log import commit_text


def commit_mark(table: LakePath, version: int) -> str:
    """A digest of the commit that made a version; empty where the log has forgotten it."""
    try:
        text = commit_text(table, version)
    except FileNotFoundError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]

"""Find in the log of a table which of its versions can be read as changes."""

from __future__ import annotations

from collections.abc import Sequence

from deltalake.exceptions import DeltaError

from include.contracts.lake_path import LakePath
from include.control.log.batch import UNDO
from include.control.log.delta_log import Commit, commits_after
from include.control.log.followed_tables import newest_table
from include.control.log.stored_tables import open_table
from include.errors import TornLogError


def feed_spans(path: LakePath, after: int, upto: int) -> list[tuple[int, int]] | None:
    """Return the (first, last) versions of (after, upto] that make up its changes, without undone rebuilds.

    It returns None if the log lacks a commit of the range, or if the change feed was off at one.
    """
    try:
        commits = list(commits_after(path, after))
        in_range = [commit for commit in commits if commit.version <= upto]
        settings = [commit.version for commit in commits if "PROPERTIES" in commit.operation]
        if len(in_range) != upto - after:
            return None
        versions = {after + 1, *(version for version in settings if version <= upto)}
        feeds = (
            [open_table(path, version=version, without_files=True) for version in versions]
            if settings
            else [newest_table(path).definition]  # the setting did not change
        )
        feed_settings = (feed.metadata().configuration.get("delta.enableChangeDataFeed") for feed in feeds)
        return _without_undone_rebuilds(in_range) if all(setting == "true" for setting in feed_settings) else None
    except (TornLogError, DeltaError):
        return None


def _without_undone_rebuilds(commits: Sequence[Commit]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    first, switches = commits[0].version, dict[str, int]()
    for commit in commits:
        rebuild = str(commit.metadata.get("sources", {}).get("rebuild", ""))
        if (switch := switches.get(rebuild.removeprefix(UNDO))) and rebuild.startswith(UNDO):
            spans.append((first, switch - 1))
            first = commit.version + 1
        switches[rebuild] = commit.version
    spans.append((first, commits[-1].version))
    return [(begin, end) for begin, end in spans if begin <= end]

"""Find in the log of a table which of its versions can be read as changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace.contracts.lake_path import LakePath
from millrace.control.log.batch import UNDO
from millrace.control.log.delta_log import Commit, commit_actions, commits_after
from millrace.control.log.followed_tables import newest_table, table_at
from millrace.control.log.stored_tables import open_table
from millrace.errors import TornLogError


def feed_spans(path: LakePath, after: int, upto: int) -> list[tuple[int, int]] | None:
    """Return the (first, last) versions of (after, upto] that make up its changes, without undone rebuilds.

    It returns None if the log lacks a commit of the range, if the change feed was off at one, or if the table had other
    columns then: Delta reads a feed with the newest columns, and refuses it where one of its own is not among them.
    """
    try:
        commits = list(commits_after(path, after))
        in_range = [commit for commit in commits if commit.version <= upto]
        if len(in_range) != upto - after:
            return None
        spans = _without_undone_rebuilds(in_range)
        newest = newest_table(path).definition
        definitions = [newest]
        if defined := {commit.version for commit in commits if commit.changes_definition}:
            versions = {at for first, last in spans for at in range(first, last + 1) if at == first or at in defined}
            definitions = [open_table(path, version=version, without_files=True) for version in sorted(versions)]
        return spans if all(_is_fed(definition, newest) for definition in definitions) else None
    except (TornLogError, DeltaError):
        return None


def _is_fed(definition: DeltaTable, newest: DeltaTable) -> bool:
    """Whether the change feed was on, and the newest columns can show its rows."""
    columns = {each.name: each for each in newest.schema().fields}
    shown = (
        (read := columns.get(each.name)) is not None and read.type == each.type and (read.nullable or not each.nullable)
        for each in definition.schema().fields
    )
    return definition.metadata().configuration.get("delta.enableChangeDataFeed") == "true" and all(shown)


@dataclass(frozen=True)
class ChangedFiles:
    """The data files that only one of two versions has. A row that changed in between is in one of them.

    Attributes:
        removed: the files that only the earlier version has, relative to the table, as the log names them.
        added: the files that only the later version has.
        size: the bytes of all of them.
    """

    removed: tuple[str, ...]
    added: tuple[str, ...]
    size: int


def changed_files(path: LakePath, after: int, upto: int) -> ChangedFiles | None:
    """Return the files that differ between two versions of a table; None if the versions cannot be compared.

    A file never changes, so all rows of a file that both versions have are the same in both. This is not true of a
    table with deletion vectors, which needs a later reader version. Columns may have been added, but not changed.
    """
    try:
        tables = [table_at(path, version) for version in (after, upto)]
    except (TornLogError, DeltaError):
        return None
    definitions = [table.definition for table in tables]
    if any(delta.protocol().min_reader_version != 1 for delta in definitions):
        return None
    earlier, later = ({each.name: each.type for each in delta.schema().fields} for delta in definitions)
    partitions = [delta.metadata().partition_columns for delta in definitions]
    if any(later.get(name) != kind for name, kind in earlier.items()) or partitions[0] != partitions[1]:
        return None
    before, now = (table.files for table in tables)
    removed, added = sorted(before.keys() - now.keys()), sorted(now.keys() - before.keys())
    size = sum(before[name].size for name in removed) + sum(now[name].size for name in added)
    return ChangedFiles(tuple(removed), tuple(added), size)


def changed_bytes(path: LakePath, after: int, upto: int) -> int:
    """Return the bytes of the files from which the changes in versions (after, upto] are read; 0 if there are none."""
    if after == upto:
        return 0
    spans = feed_spans(path, after, upto)
    if spans is None:
        files = changed_files(path, after, upto)
        return files.size if files else 0
    return sum(_feed_bytes(path, version) for first, last in spans for version in range(first, last + 1))


def _feed_bytes(path: LakePath, version: int) -> int:
    """Return the bytes of a commit's change files; without them the feed has all rows of the files that changed."""
    actions = commit_actions(path, version)
    files = [action[kind] for action in actions for kind in ("add", "remove") if kind in action]
    feed = [action["cdc"] for action in actions if "cdc" in action]
    return sum(file.get("size") or 0 for file in feed or [file for file in files if file.get("dataChange", True)])


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

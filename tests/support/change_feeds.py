"""Each version of a table against the one before it and the changes in between, as Spark reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from millrace_spark.runtime.session import own_session
from tests.support.lakehouse import Lakehouse

Rows = Counter[str]


def require_change_feed(lakehouse: Lakehouse, table: str) -> int:
    """Require that each version is the one before it and its changes; return the number of versions with changes.

    The versions are those that the log and the files still have. delta-rs reads them, Spark only the changes.
    """
    path = str(lakehouse.paths.table(table))
    newest = DeltaTable(path).version()
    versions = list(_whole_versions(path, newest))
    assert len(versions) > 1, "there is a version before"
    changes = _changes(path, versions[-1] + 1, newest)
    after = _rows(path, newest)
    for version in versions[1:]:
        before, (gone, new) = _rows(path, version), changes.get(version + 1, (Rows(), Rows()))
        assert gone <= before, f"{table} version {version + 1}: rows go that were not there"
        assert before - gone + new == after, f"{table} version {version + 1} is not version {version} and its changes"
        after = before
    return len(changes)


def _whole_versions(path: str, newest: int) -> Iterator[int]:
    """Yield the versions that can be read, the newest first."""
    for version in range(newest, -1, -1):
        try:
            files = DeltaTable(path, version=version).file_uris()
        except DeltaError:
            return
        if not all(Path(unquote(urlparse(file).path)).exists() for file in files):
            return
        yield version


def _changes(path: str, first: int, last: int) -> dict[int, tuple[Rows, Rows]]:
    """Return version -> the rows that go and those that come."""
    found: dict[int, tuple[Rows, Rows]] = {}
    with own_session({}) as session:
        feed = session.read.format("delta").option("readChangeFeed", "true")
        rows = feed.option("startingVersion", first).option("endingVersion", last).load(path).toArrow().to_pylist()
    for row in rows:
        kind, version = row.pop("_change_type"), row.pop("_commit_version")
        del row["_commit_timestamp"]
        is_new = kind in ("insert", "update_postimage")
        found.setdefault(version, (Rows(), Rows()))[is_new][_text(row)] += 1
    return found


def _rows(path: str, version: int) -> Rows:
    return Rows(map(_text, DeltaTable(path, version=version).to_pyarrow_table().to_pylist()))


def _text(row: dict[str, Any]) -> str:
    return repr(sorted((name, value) for name, value in row.items() if value is not None))

"""The files that a reader needs to read one version of a table: its data files, and a part of the log."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import unquote

from deltalake import DeltaTable

from millrace.contracts.lake_path import LakePath
from millrace.control.log.checkpoints import whole_checkpoints
from millrace.control.log.delta_log import COMMIT, versions_in
from millrace.control.log.stored_tables import logged_files
from millrace.control.storage.stored_files import names_in

LOG = "_delta_log"


def data_files_of(version: DeltaTable) -> Mapping[str, int]:
    """Return the data files of an open version, relative to its table -> their bytes by the log."""
    listed = logged_files(version)
    return dict(zip(map(unquote, listed["path"].to_pylist()), listed["size_bytes"].to_pylist(), strict=True))


def log_files_of(path: LakePath, version: int, since: int) -> list[str]:
    """Return the files of the log from which a version is read, relative to the table, in the order of a copy.

    These are the last checkpoint up to the version and the commits after it, and the commits from version `since` on,
    as far as the log still has them.

    Raises:
        FileNotFoundError: the log lacks one that the version needs.
    """
    names = list(names_in(path / LOG))
    commits = versions_in(names, COMMIT)
    base, parts = max(
        ((at, files) for at, files in whole_checkpoints(names).items() if at <= version), default=(-1, list[str]())
    )
    needed = range(base + 1, version + 1)
    if missing := [at for at in needed if at not in commits]:
        raise FileNotFoundError(f"{path / LOG}: {missing[0]:020d}{COMMIT}")
    wanted = sorted({*needed, *(at for at in commits if since <= at <= version)})
    return [f"{LOG}/{name}" for name in (*sorted(parts), *(f"{at:020d}{COMMIT}" for at in wanted))]

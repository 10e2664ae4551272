"""The files from which a spec is guessed: the newest files of a source, copied to this machine if needed."""

from __future__ import annotations

import io
import re
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from millrace.contracts.counted import counted
from millrace.control.landing.formats.compression import UNPACKING_ERRORS, open_unpacked
from millrace.control.landing.formats.json_arrays import is_array
from millrace.control.landing.landing import Landing, data_file_filter
from millrace.control.landing.on_disk import LocalLanding
from millrace.errors import NotReadyError
from millrace.inference.day_folders import WITHOUT_DAYS, path_of_days

MAX_FILES = 20
"""The number of files to read: the last by name, which are the newest if names contain a date."""

_FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet", ".avro": "avro"}


@dataclass(frozen=True)
class DeliveredFiles:
    """The files from which a spec is guessed.

    Attributes:
        folder: the feed's folder below the landing root.
        paths: the files as the landing names them, all of one format.
        format: `csv`, `json`, `parquet` or `avro`.
        suffix: the end of their names, such as `.csv.gz`.
        path: the `path` of the source, which means the folders of days; `.` without them.
        left_out: the number of files with other suffixes in the folder.
    """

    folder: str
    paths: tuple[str, ...]
    format: str
    suffix: str
    path: str
    left_out: int = 0

    @property
    def by_day(self) -> bool:
        """Whether they are in folders of days, such as `date=2013-01-01`."""
        return self.path != WITHOUT_DAYS


@dataclass(frozen=True)
class LocalCopy:
    """A delivered file, or a copy of it on this machine; `name` is the place where it was delivered, for people."""

    name: str
    path: Path

    @property
    def holds_array(self) -> bool:
        """Whether its JSON is an array instead of lines. One with broken compression is none: its reader refuses it."""
        with self.path.open("rb") as stored, open_unpacked(self.path.name, stored) as content:
            try:
                return is_array(io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace"))
            except UNPACKING_ERRORS:
                return False

    @property
    def is_empty(self) -> bool:
        """Whether it has no content. A file with broken compression is not empty: its reader refuses it."""
        with self.path.open("rb") as stored:
            if not stored.read(1):
                return True
            stored.seek(0)
            try:
                with open_unpacked(self.path.name, stored) as content:
                    return not content.read(1)
            except UNPACKING_ERRORS:
                return False


def files_of_source(landing: Landing, folder: str) -> DeliveredFiles:
    """Return the last files of the most frequent format below the folder.

    Raises:
        NotReadyError: there is no such folder, or none of them.
    """
    all_paths = sorted(filter(_suffix, paths_below(landing, folder)))
    if not all_paths:
        raise NotReadyError(
            f"{landing.location(folder)} holds no file that ends in {', '.join(_FORMATS)} (CSV and JSON also with .gz "
            "or .zst): a spec is guessed from what was delivered",
            "Name a folder below the landing root (LAKEHOUSE_LANDING).",
        )
    ((suffix, count),) = Counter(map(_suffix, all_paths)).most_common(1)
    paths = tuple(path for path in all_paths if _suffix(path) == suffix)[-MAX_FILES:]
    path = path_of_days([path.removeprefix(f"{folder}/") for path in paths])
    file_format = _FORMATS[f".{suffix.split('.')[1]}"]
    return DeliveredFiles(folder, paths, file_format, suffix, path, len(all_paths) - count)


def paths_below(landing: Landing, folder: str) -> list[str]:
    """Return the data files below a folder, as the landing names them.

    Raises:
        NotReadyError: there is no such folder.
    """
    files = landing.files(folder, data_file_filter("*"))
    if files is None:
        way_out = "Name a folder below the landing root (LAKEHOUSE_LANDING)."
        raise NotReadyError(f"there is no folder {landing.location(folder)}", way_out)
    return [file.path for file in files]


def copies(landing: Landing, delivered: DeliveredFiles, scratch: Path) -> list[LocalCopy]:
    """Return the delivered files that are not empty; files of a bucket are copied to `scratch`.

    Raises:
        NotReadyError: all of them are empty.
    """
    local = [
        LocalCopy(landing.location(path), _local_path(landing, path, scratch / str(number)))
        for number, path in enumerate(delivered.paths)
    ]
    files = [file for file in local if not file.is_empty]
    if not files:
        seen = counted(len(local), "file")
        place = landing.location(delivered.folder)
        raise NotReadyError(f"the newest files in {place} ({seen}) are empty: nothing to guess from")
    return files


def _local_path(landing: Landing, path: str, folder: Path) -> Path:
    if isinstance(landing, LocalLanding):
        return Path(landing.location(path))
    folder.mkdir()
    copy = folder / PurePosixPath(path).name
    with landing.open(path) as content, copy.open("wb") as target:
        shutil.copyfileobj(content, target)
    return copy


def has_known_format(path: str) -> bool:
    """Return whether the name of a file says one of the formats of which a spec can be guessed."""
    return bool(_suffix(path))


def _suffix(path: str) -> str:
    """Return the suffix, such as `.csv` or `.csv.gz`; empty for an unknown format."""
    match = re.search(r"(\.[a-z]+?)(\.gz|\.zst)?$", path)
    return match[0] if match and match[1] in _FORMATS else ""

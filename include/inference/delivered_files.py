"""The files that a spec is guessed from: the newest that a source has delivered, within reach of this machine."""

from __future__ import annotations

import io
import re
import shutil
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

import zstandard

from include.control.landing.file_names import data_files
from include.control.landing.formats.compression import unpacked
from include.control.landing.formats.json_arrays import is_array
from include.control.landing.landing import Landing
from include.control.landing.on_disk import LocalLanding
from include.errors import NotReadyError

FILES_LOOKED_AT = 20
"""The last files by name, which are the newest where names hold a date."""

_FORMATS = {
    ".csv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".avro": "avro",
}
_DAY_FOLDER = re.compile(r"date=\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Delivered:
    """The files that a spec is guessed from.

    Attributes:
        folder: the feed's folder below the landing root.
        paths: the files as the landing names them, all of one format.
        format: `csv`, `json`, `parquet` or `avro`.
        suffix: how their names end, such as `.csv.gz`.
        by_day: whether they lie in folders such as `date=2013-01-01`.
        left_out: how many files of other suffixes lie beside them.
    """

    folder: str
    paths: tuple[str, ...]
    format: str
    suffix: str
    by_day: bool
    left_out: int = 0


@dataclass(frozen=True)
class LocalCopy:
    """A delivered file, or a copy of it on this machine.

    Attributes:
        name: where it was delivered, as a person finds it.
        path: where it can be read.
    """

    name: str
    path: Path

    @property
    def holds_array(self) -> bool:
        """Whether its JSON is one array, not lines."""
        with self.path.open("rb") as stored, self._content(stored) as content:
            return is_array(io.TextIOWrapper(content, encoding="utf-8-sig", errors="replace"))

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing in it; one that is not packed as it says is for its reader to refuse."""
        with self.path.open("rb") as stored:
            if not stored.read(1):
                return True
            stored.seek(0)
            try:
                with self._content(stored) as content:
                    return not content.read(1)
            except (OSError, EOFError, zlib.error, zstandard.ZstdError):
                return False

    def _content(self, stored: BinaryIO) -> BinaryIO:
        return unpacked(self.path.name, stored)


def delivered_files(landing: Landing, folder: str) -> Delivered:
    """The last files below the folder, of the format that most of them have.

    Raises:
        NotReadyError: there are none.
    """
    known = sorted(file.path for file in landing.files(folder, data_files("*")) or () if _suffix(file.path))
    if not known:
        msg = (
            f"{landing.place(folder)} holds no file that ends in {', '.join(_FORMATS)} (CSV and JSON also with .gz or "
            ".zst): a spec is guessed from what was delivered\nName a folder below the landing root "
            "(LAKEHOUSE_LANDING)."
        )
        raise NotReadyError(msg)
    ((suffix, alike),) = Counter(map(_suffix, known)).most_common(1)
    paths = [path for path in known if _suffix(path) == suffix][-FILES_LOOKED_AT:]
    by_day = all(_DAY_FOLDER.fullmatch(path.removeprefix(f"{folder}/").split("/")[0]) for path in paths)
    return Delivered(folder, tuple(paths), _FORMATS[f".{suffix.split('.')[1]}"], suffix, by_day, len(known) - alike)


def copies(landing: Landing, delivered: Delivered, scratch: Path) -> list[LocalCopy]:
    """The delivered files that have something in them; those of a bucket are copied to `scratch`.

    Raises:
        NotReadyError: all of them are empty.
    """
    every = [
        LocalCopy(landing.place(path), _here(landing, path, scratch / str(number)))
        for number, path in enumerate(delivered.paths)
    ]
    found = [file for file in every if not file.is_empty]
    if not found:
        msg = f"the newest {len(every)} files in {landing.place(delivered.folder)} are empty: nothing to guess from"
        raise NotReadyError(msg)
    return found


def _here(landing: Landing, path: str, folder: Path) -> Path:
    if isinstance(landing, LocalLanding):
        return Path(landing.place(path))
    folder.mkdir()
    copy = folder / PurePosixPath(path).name
    with landing.open(path) as content, copy.open("wb") as target:
        shutil.copyfileobj(content, target)
    return copy


def _suffix(path: str) -> str:
    """`.csv` or `.csv.gz` and the like; empty for a file of no known format."""
    found = re.search(r"(\.[a-z]+?)(\.gz|\.zst)?$", path)
    return found[0] if found and found[1] in _FORMATS else ""

"""The names of landing files: which of them a spec selects, and which are no data yet."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

_UNFINISHED = (".tmp", ".partial", ".crc", "._COPYING_", ".inprogress")
"""Endings of files and folders that a source system is still writing, or that hold no data."""

_NO_DATA = re.compile(rf"(?:^|/)[._]|(?:{'|'.join(map(re.escape, _UNFINISHED))})(?:/|$)")
"""A path with a hidden or unfinished part: Spark's own writers write to `_temporary`, for example."""


def data_file_filter(pattern: str) -> Callable[[str], bool]:
    """Return a function that tests whether the path of a file, relative to its folder, matches and is finished data.

    A pattern without a slash applies to the name, in the folder itself and in all folders below.

    >>> is_selected = data_file_filter("eu/**/*.csv")
    >>> [is_selected(path) for path in ("eu/a.csv", "eu/x/y/a.csv", "us/a.csv", "eu/_temporary/a.csv", "eu/a.csv.tmp")]
    [True, True, False, False, False]
    """
    regex = ""
    for part in (pattern if "/" in pattern else f"**/{pattern}").split("/"):
        name = fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")
        regex += r"(?:[^/]+/)*" if part == "**" else f"{name}/"  # `**` is any number of folders
    matches = re.compile(regex.removesuffix("/")).fullmatch
    return lambda path: matches(path) is not None and not _NO_DATA.search(path)

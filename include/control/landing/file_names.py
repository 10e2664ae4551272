"""The names of landing files: which of them a spec asks for, and which are no data yet."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable

UNFINISHED = (".tmp", ".partial", ".crc", "._COPYING_", ".inprogress")
"""Endings of files and folders that a source system is still writing, or that are no data."""

_SET_ASIDE = re.compile(rf"(?:^|/)[._]|(?:{'|'.join(map(re.escape, UNFINISHED))})(?:/|$)")
"""A path with a part that is hidden or unfinished: Spark's own writers keep theirs in `_temporary`."""


def data_files(pattern: str) -> Callable[[str], bool]:
    """Whether the path of a file below its folder matches, and is neither hidden nor unfinished.

    A pattern without a slash is that of the name, in whatever folder below.

    >>> is_wanted = data_files("eu/**/*.csv")
    >>> [is_wanted(path) for path in ("eu/a.csv", "eu/x/y/a.csv", "us/a.csv", "eu/_temporary/a.csv", "eu/a.csv.tmp")]
    [True, True, False, False, False]
    """
    matches = re.compile(_as_regex(pattern if "/" in pattern else f"**/{pattern}")).fullmatch
    return lambda path: matches(path) is not None and not _SET_ASIDE.search(path)


def _as_regex(pattern: str) -> str:
    """A glob of paths, in which `**` is any number of folders, as a regular expression."""
    parts = [r"(?:[^/]+/)*" if part == "**" else f"{_as_name_regex(part)}/" for part in pattern.split("/")]
    return "".join(parts).removesuffix("/")


def _as_name_regex(part: str) -> str:
    return fnmatch.translate(part).removeprefix("(?s:").removesuffix(r")\Z").replace(".*", "[^/]*")

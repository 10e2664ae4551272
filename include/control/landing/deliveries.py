"""All that lies in the landing folders of a feed, of whatever interval: what `run --follow` looks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from pathlib import PurePosixPath
from string import Formatter

from include.contracts.interval import Interval
from include.contracts.spec.bronze_sources import LandingSource
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.file_names import data_files
from include.control.landing.landing import Landing, interval_folder
from include.control.log.batch import FileFact
from include.errors import NotDeliveredError

_AT_A_TIME = 5_000

_DIGITS = {"Y": r"\d{4}", "m": r"\d{2}", "d": r"\d{2}", "H": r"\d{2}", "M": r"\d{2}", "S": r"\d{2}", "j": r"\d{3}"}
_LENGTHS = (
    ("S", timedelta(seconds=1)),
    ("M", timedelta(minutes=1)),
    ("H", timedelta(hours=1)),
    ("d", timedelta(days=1)),
    ("j", timedelta(days=1)),
)
"""How long an interval is whose folder's name ends in this part of a time."""


@dataclass(frozen=True)
class Folders:
    """How the folders of a feed name their intervals.

    Attributes:
        source: the feed.
        pattern: of the folder's path below the landing root, a group a part of a time.
        parts: group -> the part of a time, such as `Y`.
        length: of an interval.
    """

    source: LandingSource
    pattern: re.Pattern[str]
    parts: dict[str, str]
    length: timedelta

    def interval(self, path: str) -> Interval | None:
        """The interval of a file, or of a folder, by its path below the landing root; None where it states none."""
        found = self.pattern.match(path)
        if found is None:
            return None
        values: dict[str, str] = {}
        for group, part in self.parts.items():
            if values.setdefault(part, found[group]) != found[group]:
                return None
        try:
            start = datetime.strptime(f"{' '.join(values.values())} +0000", f"{' '.join(map('%'.__add__, values))} %z")
        except ValueError:
            return None
        interval = Interval(start=start, end=start + self.length)
        return interval if path.startswith(interval_folder(self.source, interval)) else None


def folders_of(source: LandingSource) -> Folders | None:
    """How the feed's folders name their intervals; None where one folder is for all of them, or the way is unknown.

    Known are the fields of `interval_start` with digits: `%Y`, `%m`, `%d`, `%j`, `%H`, `%M`, `%S`.

    >>> source = LandingSource(landing="flights", path="y={interval_start:%Y}/{interval_start:%m-%d}", format="json")
    >>> str(folders_of(source).interval("flights/y=2013/01-02/a.json"))
    '[2013-01-02T00:00:00Z, 2013-01-03T00:00:00Z)'
    """
    parts: dict[str, str] = {}
    pattern = f"{re.escape(source.landing)}/"
    for text, field, form, _ in Formatter().parse(str(PurePosixPath(source.path))):
        pattern += re.escape(text)
        if field is None:
            continue
        if field != "interval_start" or not (found := _times(form or "", parts)):
            return None
        pattern += found
    length = next((length for part, length in _LENGTHS if part in parts.values()), None)
    if not parts or length is None:
        return None
    return Folders(source, re.compile(f"{pattern}(?:/|$)"), parts, length)


def _times(form: str, parts: dict[str, str]) -> str:
    """The pattern of one field of the path, whose groups are added to `parts`; empty where it is not known."""
    pattern = ""
    for literal, part in re.findall(r"([^%]*)(?:%(.))?", form):
        pattern += re.escape(literal)
        if not part:
            continue
        if part not in _DIGITS:
            return ""
        group = f"g{len(parts)}"
        parts[group] = part
        pattern += f"(?P<{group}>{_DIGITS[part]})"
    return pattern


def delivered(spec: BronzeSpec, landing: Landing, folders: Folders) -> Iterator[list[FileFact]]:
    """Every file of the feed that an interval's run would load, some thousands at a time.

    Raises:
        NotDeliveredError: the feed has no folder at all.
    """
    source = spec.landing_source
    found = landing.files(source.landing, lambda _: True)
    if found is None:
        raise NotDeliveredError(
            f"{spec.table}: no landing folder {landing.place(source.landing)}",
            "The source has never delivered. If it does so elsewhere, correct source.landing, or LAKEHOUSE_LANDING.",
        )
    is_wanted = data_files(source.files)
    files = (file for file in found if _is_of_an_interval(file.path, source, folders, is_wanted))
    return iter(lambda: list(islice(files, _AT_A_TIME)), [])


def _is_of_an_interval(path: str, source: LandingSource, folders: Folders, is_wanted: Callable[[str], bool]) -> bool:
    interval = folders.interval(path)
    return interval is not None and is_wanted(path.removeprefix(interval_folder(source, interval)).lstrip("/"))

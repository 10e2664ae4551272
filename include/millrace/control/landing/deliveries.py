"""The landing files of a feed for all its intervals, which `run --follow` looks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from string import Formatter

from millrace.contracts.interval import Interval
from millrace.contracts.spec.bronze_sources import LandingSource
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.landing import Landing, data_file_filter, interval_folder, plain_folder
from millrace.control.landing.on_disk import TOP
from millrace.control.log.batch import FileFact
from millrace.errors import NotDeliveredError

_DIGITS = {"Y": r"\d{4}", "m": r"\d{2}", "d": r"\d{2}", "H": r"\d{2}", "M": r"\d{2}", "S": r"\d{2}", "j": r"\d{3}"}
_NO_ZEROS = {
    f"interval_start.{name}": part
    for name, part in (("year", "Y"), ("month", "m"), ("day", "d"), ("hour", "H"), ("minute", "M"), ("second", "S"))
}
"""The field of a path that writes a number without zeros -> the part of the time."""

_LENGTHS = (
    ("S", timedelta(seconds=1)),
    ("M", timedelta(minutes=1)),
    ("H", timedelta(hours=1)),
    ("d", timedelta(days=1)),
    ("j", timedelta(days=1)),
)
"""The length of the intervals, by the smallest part of the time in their folder names."""


@dataclass(frozen=True)
class Folders:
    """The rule by which the folder names of a feed give the intervals.

    Attributes:
        source: the feed.
        pattern: matches the path of a folder below the landing root, with a group for each part of the time.
        parts: group -> the part of a time, such as `Y`.
        length: the length of an interval.
    """

    source: LandingSource
    pattern: re.Pattern[str]
    parts: dict[str, str]
    length: timedelta

    def interval(self, path: str) -> Interval | None:
        """Return the interval of a file or a folder by its path below the landing root; None if the path has none."""
        groups = self.pattern.match(path)
        if groups is None:
            return None
        values: dict[str, str] = {}
        for group, part in self.parts.items():
            if values.setdefault(part, groups[group]) != groups[group]:
                return None
        try:
            start = datetime.strptime(f"{' '.join(values.values())} +0000", f"{' '.join(map('%'.__add__, values))} %z")
        except ValueError:
            return None
        interval = Interval(start=start, end=start + self.length)
        return interval if path.startswith(interval_folder(self.source, interval)) else None


def folders_of(source: LandingSource) -> Folders | None:
    """Return the rule of the feed's folder names; None if one folder is for all intervals, or the rule is unknown.

    Known are the fields of `interval_start` with digits: `%Y`, `%m`, `%d`, `%j`, `%H`, `%M`, `%S`, and those without
    leading zeros: `.year`, `.month`, `.day`, `.hour`, `.minute`, `.second`.

    >>> source = LandingSource(landing="flights", path="y={interval_start:%Y}/{interval_start:%m-%d}", format="json")
    >>> str(folders_of(source).interval("flights/y=2013/01-02/a.json"))
    '[2013-01-02T00:00:00Z, 2013-01-03T00:00:00Z)'
    """
    parts: dict[str, str] = {}
    pattern = _above(source)
    for text, field, form, _ in Formatter().parse(plain_folder(source.path)):
        pattern += re.escape(text)
        if field is None:
            continue
        if (part := _NO_ZEROS.get(field)) and not form:
            if parts and not text:  # Two numbers without zeros, such as 2025711, have several meanings.
                return None
            pattern += _group(part, _DIGITS["Y"] if part == "Y" else "(?:0|[1-9]\\d?)", parts)
            continue
        if field != "interval_start" or not (field_pattern := _time_pattern(form or "", parts)):
            return None
        pattern += field_pattern
    length = next((length for part, length in _LENGTHS if part in parts.values()), None)
    if not parts or length is None:
        return None
    return Folders(source, re.compile(f"{pattern}(?:/|$)"), parts, length)


def _time_pattern(form: str, parts: dict[str, str]) -> str:
    """Return the pattern of one field of the path, and add its groups to `parts`; empty if the field is unknown."""
    pattern = ""
    for literal, part in re.findall(r"([^%]*)(?:%(.))?", form):
        pattern += re.escape(literal)
        if not part:
            continue
        if part not in _DIGITS:
            return ""
        pattern += _group(part, _DIGITS[part], parts)
    return pattern


def _group(part: str, digits: str, parts: dict[str, str]) -> str:
    group = f"g{len(parts)}"
    parts[group] = part
    return f"(?P<{group}>{digits})"


def delivered_files(spec: BronzeSpec, landing: Landing, folders: Folders) -> Iterator[FileFact]:
    """Return every file of the feed that the run of some interval would load.

    Raises:
        NotDeliveredError: the feed has no folder at all.
    """
    source = spec.landing_source
    files = landing.files(source.landing, lambda _: True)
    if files is None:
        raise NotDeliveredError(
            f"{spec.table}: no landing folder {landing.location(source.landing)}",
            "The source has never delivered. If it delivers elsewhere, correct source.landing, or LAKEHOUSE_LANDING.",
        )
    is_loaded = loaded_file_filter(source)
    return (file for file in files if is_loaded(file.path))


def loaded_file_filter(source: LandingSource) -> Callable[[str], bool]:
    """Return a function that tests whether the run of some interval would load a file, by its path in the ledger.

    Where the rule of the folder names is unknown, any text may stand for the time.

    >>> source = LandingSource(landing="flights", path="{interval_end:%Y}", files="*.csv", format="csv")
    >>> list(map(loaded_file_filter(source), ("flights/2013/x/a.csv", "flights/a.csv", "flights/2013/a.txt")))
    [True, False, False]
    """
    is_data_file, folders = data_file_filter(source.files), folders_of(source)

    def is_in_interval(path: str) -> bool:
        interval = folders.interval(path) if folders else None
        return interval is not None and is_data_file(
            path.removeprefix(interval_folder(source, interval)).removeprefix("/")
        )

    if folders:
        return is_in_interval
    path, pattern = plain_folder(source.path), _above(source)
    for text, field, _, _ in Formatter().parse("" if path == TOP else f"{path}/"):
        pattern += re.escape(text) + (".+" if field else "")
    is_folder = re.compile(pattern).fullmatch

    def is_in_folder(path: str) -> bool:
        begins = (0, *(sign.end() for sign in re.finditer("/", path)))
        return any(is_folder(path[:at]) and is_data_file(path[at:]) for at in begins)

    return is_in_folder


def _above(source: LandingSource) -> str:
    """Return the pattern of what the path of each file begins with."""
    folder = plain_folder(source.landing)
    return "" if folder == TOP else f"{re.escape(folder)}/"

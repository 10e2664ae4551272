"""Folders of days, as sources name them, and the `path` of a source that means them."""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date

_KEY = "(?:[A-Za-z_]+=)?"
_DAY = re.compile(rf"({_KEY})(\d{{4}})([-_.]?|/{_KEY})(\d{{1,2}})([-_.]?|/{_KEY})(\d{{1,2}})(?:/|$)")
"""Year, month and day in one folder or in three, each with or without a key."""

WITHOUT_DAYS = "."
"""The `path` of a source whose files are not in folders of days."""


def day_of(path: str) -> date | None:
    """Return the day whose folder, or folders, a path begins with; None if it begins with none.

    >>> day_of("2025/07/01/a.csv"), day_of("year=2025/month=7/day=1"), day_of("2025/a.csv")
    (datetime.date(2025, 7, 1), datetime.date(2025, 7, 1), None)
    """
    match = _DAY.match(path)
    try:
        return date(int(match[2]), int(match[4]), int(match[6])) if match else None
    except ValueError:
        return None


def path_of_days(paths: Collection[str]) -> str:
    """Return the `path` of a source with these files, by their paths below its folder; `.` if days are not folders.

    >>> path_of_days(["2025/07/01/a.csv", "2025/07/02/a.csv"])
    '{interval_start:%Y}/{interval_start:%m}/{interval_start:%d}'
    >>> path_of_days(["date=2025-07-01/a.csv"]), path_of_days(["2025-07-01/a.csv", "a.csv"])
    ('date={interval_start:%Y-%m-%d}', '.')
    """
    matches = [match for match in map(_DAY.match, paths) if match and day_of(match[0])]
    forms = {(match[1], match[3], match[5]) for match in matches}
    if len(matches) < len(paths) or len(forms) != 1:
        return WITHOUT_DAYS
    ((before, first, second),) = forms
    if any(len(match[part]) < 2 for match in matches for part in (4, 6)):
        return f"{before}{{interval_start:%Y}}{first}{{interval_start.month}}{second}{{interval_start.day}}"
    if "/" in first + second:
        return f"{before}{{interval_start:%Y}}{first}{{interval_start:%m}}{second}{{interval_start:%d}}"
    return f"{before}{{interval_start:%Y{first}%m{second}%d}}"

"""The spellings of days and times that bronze reads by a `format`, as conditions of DuckDB."""

from __future__ import annotations

from itertools import product
from zoneinfo import available_timezones

from millrace.inference.delivered_rows import quoted

DAY_NUMBER, _ISO_DAY = "yyyyMMdd", "yyyy-MM-dd"
DAYS = {
    "dd.MM.yyyy": (r"\d\d\.\d\d\.\d{4}", "%d.%m.%Y"),
    "dd/MM/yyyy": (r"\d\d/\d\d/\d{4}", "%d/%m/%Y"),
    "MM/dd/yyyy": (r"\d\d/\d\d/\d{4}", "%m/%d/%Y"),
    "yyyy/MM/dd": (r"\d{4}/\d\d/\d\d", "%Y/%m/%d"),
    DAY_NUMBER: (r"(19|20)\d{6}", "%Y%m%d"),
    _ISO_DAY: (r"\d{4}-\d\d-\d\d", "%Y-%m-%d"),
}
"""Pattern of Spark for a day -> regular expression, pattern of DuckDB."""

_OF_DAY = {" HH:mm": (r" \d\d:\d\d", " %H:%M"), " HH:mm:ss": (r" \d\d:\d\d:\d\d", " %H:%M:%S")}
_ZONE = " VV"
_TIMES = {
    f"{day}{time}{zone}": (f"{DAYS[day][0]}{of_time}{' [^ ]+' if zone else ''}", f"{DAYS[day][1]}{of_duckdb}")
    for day, (time, (of_time, of_duckdb)), zone in product(DAYS, _OF_DAY.items(), ("", _ZONE))
    # A run reads the times of ISO 8601 without a format, but for those with the name of a zone.
    if day != DAY_NUMBER and (zone or day != _ISO_DAY)
}
FORMATS = {day: DAYS[day] for day in DAYS if day != _ISO_DAY} | _TIMES
"""Pattern of Spark -> regular expression, pattern of DuckDB for what stands before a zone."""

_NAMES = sorted({"UTC", "GMT"} | {name for name in available_timezones() if "/" in name})
ZONES = f"SET VARIABLE zones = [{', '.join(map(quoted, _NAMES))}]"
"""The statement after which DuckDB knows the names of zones; short ones, such as CET, mean others elsewhere."""


def is_time(pattern: str, text: str) -> str:
    """Return the SQL of whether a text is a day or a time of a pattern; `ZONES` was executed before."""
    is_zone = f" AND list_contains(getvariable('zones'), split_part({text}, ' ', 3))" if pattern.endswith(_ZONE) else ""
    return f"regexp_full_match({text}, '{FORMATS[pattern][0]}') AND {time_of(pattern, text)} IS NOT NULL{is_zone}"


def time_of(pattern: str, text: str) -> str:
    """Return the SQL of the time that a text of a pattern has, in its own zone; null if there is no such one."""
    before_zone = f"regexp_replace({text}, ' [^ ]+$', '')" if pattern.endswith(_ZONE) else text
    return f"try_strptime({before_zone}, '{FORMATS[pattern][1]}')"

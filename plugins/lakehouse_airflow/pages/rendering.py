"""Make a page from a template: escaped text, one style sheet, no script, nothing from another site."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from lakehouse_airflow.pages import paths
from lakehouse_airflow.pages.small_charts import sparkline
from millrace.clock import utc_now
from millrace.contracts.counted import counted, in_bytes
from millrace.contracts.time_format import ISO_SECOND, MINUTE
from millrace.overview.observations import observed_text

_FOLDER = Path(__file__).parent / "templates"
_STYLE = (_FOLDER / "pages.css").read_bytes()
STYLE_VERSION = hashlib.sha256(_STYLE).hexdigest()[:12]

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-store",
}
_UNITS = ((timedelta(days=365), "year"), (timedelta(days=1), "day"), (timedelta(hours=1), "hour"))


def page(template: str, status: int = 200, **values: Any) -> HTMLResponse:
    """Return the page that a template makes of these values."""
    return HTMLResponse(_TEMPLATES.get_template(template).render(values), status, _HEADERS)


def style_sheet() -> Response:
    """Return the style sheet; its address has a digest of it, so that a browser may keep it."""
    return Response(_STYLE, media_type="text/css", headers={"Cache-Control": "private, max-age=31536000, immutable"})


def error_page(title: str, status: int, cause: str, way_out: str = "", login: str = "") -> HTMLResponse:
    """Return the page that says why there is no page: the cause, and the way out.

    Args:
        title: its title.
        status: the status of the answer.
        cause: the cause.
        way_out: what helps, if there is something.
        login: the path of the log-in, if it would help.
    """
    return page("error.html", status, title=title, cause=cause, way_out=way_out, login=login)


def duration(length: timedelta) -> str:
    """Return a length of time in its largest unit.

    >>> [duration(timedelta(minutes=minutes)) for minutes in (0, 5, 61, 60 * 49)]
    ['less than a minute', '5 minutes', '1 hour', '2 days']
    """
    for unit, name in (*_UNITS, (timedelta(minutes=1), "minute")):
        if count := length // unit:
            return f"{count:,} {name}{'s' if count > 1 else ''}"
    return "less than a minute"


def about(seconds: float) -> str:
    """Return an estimated time, as exact as an estimate is.

    >>> [about(seconds) for seconds in (0.2, 42.4, 500, 9000)]
    ['1 second', '42 seconds', '8 minutes', '2.5 hours']
    """
    if seconds < 90:
        return counted(max(round(seconds), 1), "second")
    return f"{seconds / 60:.0f} minutes" if seconds < 90 * 60 else f"{seconds / 3600:.1f} hours"


def how_long(moment: datetime) -> Markup:
    """Return the time between a moment and now, with the moment itself as its title."""
    place = Markup('<time datetime="{}" title="since {} UTC">{}</time>')
    return place.format(f"{moment:{ISO_SECOND}}", f"{moment:{MINUTE}}", duration(abs(utc_now() - moment)))


def ago(moment: datetime) -> Markup:
    """Return how long ago a moment was, with the moment itself as its title.

    A moment may be to come: clocks differ by seconds, and a row may have any time.

    >>> [ago(utc_now() + timedelta(hours=hours)).striptags() for hours in (-50, 49.5)]
    ['2 days ago', 'in 2 days']
    """
    length = how_long(moment)
    return Markup("in ") + length if moment > utc_now() else length + " ago"


def bounds(arguments: Mapping[str, Any]) -> str:
    """Return the arguments of a rule other than its columns, to be read before its action.

    >>> bounds({"column": "delay", "min_value": -60, "value_set": ["a", "b"]})
    'min_value=-60, value_set=[a, b], '
    """
    named = ((name, value) for name, value in arguments.items() if not name.startswith("column"))
    texts = ((name, f"[{', '.join(map(str, value))}]" if isinstance(value, list) else value) for name, value in named)
    return "".join(f"{name}={text}, " for name, text in texts)


def breakable(text: str) -> Markup:
    """Return the name of a rule, or a text with one, that a narrow column breaks between its words.

    >>> str(breakable("expect_column_to_exist(<a>)"))
    'expect_<wbr>column_<wbr>to_<wbr>exist<wbr>(&lt;a&gt;)'
    """
    return escape(text).replace("_", Markup("_<wbr>")).replace("(", Markup("<wbr>("))


def number(count: int | None) -> str:
    """Return a number with thousands separators; nothing for None."""
    return "" if count is None else f"{count:,}"


_TEMPLATES = Environment(
    loader=FileSystemLoader(_FOLDER),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,  # after an upgrade, a server that still runs the old code would read the new templates
)
_TEMPLATES.filters.update(
    about=about,
    ago=ago,
    bounds=bounds,
    breakable=breakable,
    counted=counted,
    how_long=how_long,
    in_bytes=in_bytes,
    number=number,
    duration=duration,
)
_TEMPLATES.globals.update(observed_text=observed_text, paths=paths, sparkline=sparkline, style_version=STYLE_VERSION)

"""The frame of the pages that Millrace writes itself: they load nothing, run no script, and follow the dark mode."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from fastapi.responses import HTMLResponse

from lakehouse_airflow.ui.links import airflow_path, lakehouse_path

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = (
    ":root{color-scheme:light dark} body{background:Canvas;color:CanvasText;"
    "max-width:60em;margin:2em auto;padding:0 1em;font:15px/1.45 Inter,system-ui,sans-serif} "
    "td,th{padding:.3em;text-align:left} "
    "a{color:LinkText;overflow-wrap:anywhere} :focus-visible{outline:2px solid;outline-offset:2px} "
    "img{max-width:100%} td,th{overflow-wrap:anywhere}"
)


def html_page(title: str, body: str, status: int = 200, above: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return a page, with the way back to the pages above it.

    Args:
        title: its title, as text.
        body: its content, as HTML.
        status: the status of the answer.
        above: name -> path of the pages between the page Lakehouse and this one.
    """
    ways = {"Airflow": airflow_path(), "Lakehouse": lakehouse_path("tables"), **(above or {})}
    links = " / ".join(f"<a href='{escape(path)}'>{escape(name)}</a>" for name, path in ways.items())
    nav = f"<nav aria-label='Breadcrumb'>{links} / <span aria-current='page'>{escape(title)}</span></nav>"
    head = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return HTMLResponse(f"{head}{nav}<main>{body}</main></html>", status, _HEADERS)

"""The frame of the pages that Millrace writes itself: they load nothing, run no script, and follow the dark mode."""

from __future__ import annotations

from html import escape

from fastapi.responses import HTMLResponse

_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
}
_STYLE = (
    ":root{color-scheme:light dark} body{background:Canvas;color:CanvasText;"
    "max-width:60em;margin:2em auto;padding:0 1em;font-family:sans-serif;"
    "line-height:1.4} td,th{padding:.3em;text-align:left} label{display:block;margin-top:1em;font-weight:bold} "
    "input,select,textarea,button{font:inherit;margin:.2em 0;padding:.3em} "
    "img{max-width:100%} td,th{overflow-wrap:anywhere} "
    "input[type=text],input[type=number],textarea{width:100%;box-sizing:border-box}"
)


def html_page(title: str, body: str, status: int = 200) -> HTMLResponse:
    """Return a page.

    Args:
        title: its title, as text.
        body: its content, as HTML.
        status: the status of the answer.
    """
    head = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return HTMLResponse(f"{head}<main>{body}</main></html>", status, _HEADERS)

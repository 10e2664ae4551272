"""Serve the pages of `docs/`: the glossary, the guides, the reference and the decisions, which link one another."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, HTMLResponse, Response
from markdown_it import MarkdownIt
from starlette import status

from lakehouse_airflow.ui.links import airflow_path, lakehouse_path
from lakehouse_airflow.ui.rights import MAY_READ_LOGS

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

_PACKAGE = Path(__file__).resolve().parents[1]
_OF_WHEEL, _OF_CLONE = _PACKAGE / "docs", _PACKAGE.parents[1] / "docs"
_FOLDER = _OF_WHEEL if _OF_WHEEL.is_dir() else _OF_CLONE  # a wheel brings it along, beside its code
_PICTURES = (".png", ".svg")
router = APIRouter(dependencies=[MAY_READ_LOGS])


@router.get("/docs/{page:path}")
def read_documentation(page: str) -> Response:
    """Return a page, such as `glossary.md`, as HTML, or a picture that pages show.

    Raises:
        HTTPException: 404 if there is no such page.
    """
    file = (_FOLDER / page).resolve()
    if not file.is_relative_to(_FOLDER) or file.suffix not in (".md", *_PICTURES) or not file.is_file():
        raise HTTPException(status.HTTP_404_NOT_FOUND, "there is no such page of docs/")
    if file.suffix in _PICTURES:
        return FileResponse(file)
    # Comments mark what is generated; they would be shown.
    text = re.sub(r"^<!--.*?-->$", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    body = MarkdownIt("commonmark", {"html": False}).enable("table").render(text)
    return _html_page(file.stem, body)


def _html_page(title: str, body: str) -> HTMLResponse:
    """Return a page with this title and HTML, and the way back to the pages above it; it loads nothing."""
    ways = {"Airflow": airflow_path(), "Lakehouse": lakehouse_path("tables")}
    links = " / ".join(f"<a href='{escape(path)}'>{escape(name)}</a>" for name, path in ways.items())
    nav = f"<nav aria-label='Breadcrumb'>{links} / <span aria-current='page'>{escape(title)}</span></nav>"
    head = (
        "<!doctype html><html lang='en'><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(title)}</title><style>{_STYLE}</style>"
    )
    return HTMLResponse(f"{head}{nav}<main>{body}</main></html>", headers=_HEADERS)

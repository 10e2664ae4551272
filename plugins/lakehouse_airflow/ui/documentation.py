"""Serve the pages of `docs/`: the glossary, the guides, the reference and the decisions, which link one another."""

from __future__ import annotations

import re
from pathlib import Path

from fastapi import APIRouter, HTTPException
from fastapi.responses import FileResponse, Response
from markdown_it import MarkdownIt
from starlette import status

from lakehouse_airflow.ui.rights import MAY_READ_LOGS
from lakehouse_airflow.ui.web_page import html_page

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
    return html_page(file.stem, body)

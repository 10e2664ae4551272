"""What a person would stumble over on a page: with a screen reader, with poor sight, or in a small window."""

from __future__ import annotations

from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

OF_COLOURS = ("color-contrast", "link-in-text-block")
"""Axe's rules that may give another result in the dark."""

WIDTHS = (1280, 700)


def stumbles(page: Page) -> list[str]:
    """Return what is wrong with a page, in light and dark and in a wide and a narrow window."""
    found = [f"light: {problem}" for problem in _violations(page, "light", {})]
    in_colours = {"runOnly": {"type": "rule", "values": OF_COLOURS}}
    found += [f"dark: {problem}" for problem in _violations(page, "dark", in_colours)]
    found += [f"a table has no name: {text[:80]}" for text in _nameless_tables(page)]
    found += [f"{width} pixels: {more} pixels stick out" for width in WIDTHS if (more := _overflow(page, width)) > 0]
    return [f"{page.url}: {problem}" for problem in found]


def _violations(page: Page, scheme: Literal["light", "dark"], rules: dict[str, Any]) -> list[str]:
    """Return what axe says about a page in light or dark, by these rules or all."""
    page.emulate_media(color_scheme=scheme)
    response = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response
    assert response["passes"], "axe saw nothing"
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in response["violations"]
        for node in violation["nodes"]
    ]


def _nameless_tables(page: Page) -> list[str]:
    """Return the texts of the tables without a caption or another name."""
    script = """tables => tables.filter(
        table => !table.caption && !table.ariaLabel && !table.hasAttribute("aria-labelledby")
    ).map(table => table.innerText)"""
    texts: list[str] = page.locator("table").evaluate_all(script)
    return texts


def _overflow(page: Page, width: int) -> int:
    """Return by how many pixels a page is wider than a window of a width."""
    page.set_viewport_size({"width": width, "height": 800})
    script = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    more: int = page.evaluate(script)
    return more

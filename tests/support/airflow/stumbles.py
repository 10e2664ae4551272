"""What a person would stumble over on a page: with a screen reader, with poor sight, or in a small window."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SCHEMES = ("light", "dark")
WIDTHS = (1280, 700)


def stumbles(page: Page) -> list[str]:
    """Return what is wrong with a page, in light and dark and in a wide and a narrow window."""
    found = [f"{scheme}: {problem}" for scheme in SCHEMES for problem in _violations(page, scheme)]
    found += [f"a table has no name: {text[:80]}" for text in _nameless_tables(page)]
    found += [f"{width} pixels: {more} pixels stick out" for width in WIDTHS if (more := _overflow(page, width)) > 0]
    return [f"{page.url}: {problem}" for problem in found]


def _violations(page: Page, scheme: str) -> list[str]:
    """Return what axe says about structure, names and contrast of a page in light or dark."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    response = Axe().run(page).response
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

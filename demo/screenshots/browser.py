"""The browser that opens the web UI: Chromium of this machine, or else the one that Playwright has installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Error, Page, sync_playwright

PATIENCE_MS = 60_000
"""How long a page may take: Airflow's server on a machine under load answers late."""


class NoBrowserError(Exception):
    """Raised when there is no browser; the message says how to get one."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start a browser without a window, and end it.

    Raises:
        NoBrowserError: this machine has no Chromium, and Playwright has installed none.
    """
    # Chromium has no sandbox for root.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        try:
            # Without a path Playwright starts what it has installed: a Chromium that has no windows at all.
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        except Error as error:
            if "Executable doesn't exist" not in error.message:
                raise
            way_out = "Run `make browser`, or install Chromium (Debian/Ubuntu: apt install chromium)."
            raise NoBrowserError(f"this machine has no browser\n{way_out}") from error
        try:
            yield browser
        finally:
            browser.close()


def log_in(page: Page, user: str, password: str) -> None:
    """Fill in and send Airflow's log-in form, which `page` shows, and wait until it has led to another page."""
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    form = page.url
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: url != form)

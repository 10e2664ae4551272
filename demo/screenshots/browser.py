"""The browser that opens the web UI: Chromium of this machine, or else the one that Playwright has installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

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
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or playwright.chromium.executable_path
        if not Path(path).exists():
            msg = "no browser: run `make browser`, or install Chromium (Debian/Ubuntu: apt install chromium)"
            raise NoBrowserError(msg)
        # Chromium has no sandbox for root.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
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

"""A person with a browser: Chromium, whose requests and log are watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize

from demo.screenshots.browser import NoBrowserError, chromium
from embedded.stack import Stack
from tests.support.commands import skip_unless_ci


@dataclass
class Watched:
    """The requests of all pages of a browser, and what its log says about those of Millrace.

    Attributes:
        requests: the addresses that were asked.
        complaints: errors and warnings: of scripts, of loading, and violations of the content security policy.
    """

    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def note(self, message: ConsoleMessage) -> None:
        """Note a line of the browser's log."""
        page = message.page.url if message.page else ""
        if message.type in ("error", "warning") and urlsplit(page).path.startswith("/lakehouse/"):
            self.complaints.append(f"{page}: {message.text}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with ExitStack() as opened:
        try:
            browser = opened.enter_context(chromium())
        except NoBrowserError as error:
            skip_unless_ci(str(error))
        yield browser


@pytest.fixture
def context(browser: Browser, stack: Stack, cookies: dict[str, str]) -> Iterator[BrowserContext]:
    """A new profile of the browser, in which somebody is logged in."""
    size: ViewportSize = {"width": 1280, "height": 800}
    with browser.new_context(base_url=stack.address.url, viewport=size) as context:
        context.add_cookies(
            [{"name": name, "value": value, "url": stack.address.url} for name, value in cookies.items()]
        )
        yield context


@pytest.fixture
def watched(context: BrowserContext, stack: Stack) -> Iterator[Watched]:
    """What the browser does; at the end it has asked no other host, and its log has no complaint about our pages."""
    watched = Watched()
    context.on("request", lambda request: watched.requests.append(request.url))
    context.on("console", watched.note)
    context.on("weberror", lambda error: watched.complaints.append(str(error.error)))
    yield watched
    assert {urlsplit(url.removeprefix("blob:")).netloc for url in watched.requests} == {
        urlsplit(stack.address.url).netloc
    }
    assert watched.complaints == []


@pytest.fixture
def person(context: BrowserContext, watched: Watched) -> Page:
    """A page of that browser, whose requests and log are watched."""
    return context.new_page()

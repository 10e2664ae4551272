"""A person with a browser: Chromium, whose requests and log are watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, StorageState, ViewportSize

from demo.screenshots.browser import NoBrowserError, chromium, log_in
from embedded.airflow.standalone import USER, passwords
from embedded.stack import Stack
from tests.e2e.pages.watched import Watched, watch
from tests.support.commands import skip_unless_ci


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with ExitStack() as opened:
        try:
            browser = opened.enter_context(chromium())
        except NoBrowserError as error:
            skip_unless_ci(str(error))
        yield browser


@pytest.fixture(scope="session")
def logged_in(browser: Browser, stack: Stack) -> StorageState:
    """What the browser keeps of somebody who has logged in by the form."""
    with browser.new_context(base_url=stack.address.url) as context:
        page = context.new_page()
        page.goto("/")
        log_in(page, USER, passwords(stack.home)[USER])
        return context.storage_state()


@pytest.fixture
def context(browser: Browser, stack: Stack, logged_in: StorageState) -> Iterator[BrowserContext]:
    """A new profile of the browser, in which somebody is logged in."""
    size: ViewportSize = {"width": 1280, "height": 800}
    with browser.new_context(base_url=stack.address.url, viewport=size, storage_state=logged_in) as context:
        yield context


@pytest.fixture
def watched(context: BrowserContext, stack: Stack) -> Iterator[Watched]:
    """What the browser does; at the end it has asked no other host, and its log has no complaint about our pages."""
    watched = watch(context)
    yield watched
    assert {urlsplit(url.removeprefix("blob:")).netloc for url in watched.requests} == {
        urlsplit(stack.address.url).netloc
    }
    assert watched.complaints == []


@pytest.fixture
def person(context: BrowserContext, watched: Watched) -> Page:
    """A page of that browser, whose requests and log are watched."""
    return context.new_page()

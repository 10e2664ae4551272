"""What a browser does while somebody uses the pages: which addresses it asks, and what its log says."""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, ConsoleMessage


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


def watch(context: BrowserContext) -> Watched:
    """Watch all pages of a browser from now on."""
    watched = Watched()
    context.on("request", lambda request: watched.requests.append(request.url))
    context.on("console", watched.note)
    context.on("weberror", lambda error: watched.complaints.append(str(error.error)))
    return watched

"""What a page shows, read from its HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from fastapi.testclient import TestClient
from httpx import Response

from tests.support.airflow.logins import login


def show(server: TestClient, path: str, user: str = "bob") -> Shown:
    """Return a page as a user sees it; bob may edit DAGs, and so see values of rows."""
    return Shown(server.get(path, headers=login(server, user)))


class Shown(HTMLParser):
    """What a page shows: its words, its texts by the row of a table or a list, its links, its tags,
    the days in its form."""

    def __init__(self, page: Response) -> None:
        super().__init__()
        assert page.status_code == 200, page.text
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.texts: list[str] = []
        self.dates: dict[str, str] = {}
        self.feed(page.text.replace("<wbr>", ""))  # a place where a line may end, which is no text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.links += [value or "" for name, value in attrs if name in ("href", "src", "action")]
        values = {name: value or "" for name, value in attrs}
        if values.get("type") == "date":
            self.dates[values["name"]] = values.get("value", "")
        if tag in ("tr", "li"):
            self.rows.append([])

    def handle_data(self, data: str) -> None:
        self.texts += data.split()
        if self.rows and data.strip():
            self.rows[-1].append(data.strip())

    def row(self, table: str) -> str:
        """Return the text of the row of a table in the list."""
        [row] = [row for row in self.rows if row[:1] == [table]][-1:]
        return " ".join(row)

    @property
    def words(self) -> str:
        """All texts of the page."""
        return " ".join(self.texts)

    def require_own_html(self) -> None:
        """Require that the page runs nothing, and links only to this server."""
        assert not {"script", "iframe", "object", "style"} & set(self.tags)
        assert not [name for name in self.attributes if name.startswith("on") or name == "style"]
        assert [link for link in self.links if not link.startswith(("/", "?", "#"))] == []

    @property
    def tables(self) -> list[str]:
        """The tables in the list, in its order."""
        return [row[0] for row in self.rows if row and row[0].startswith(("bronze.", "silver.", "gold."))][-8:]

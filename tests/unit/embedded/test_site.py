"""The documentation as a site: each page is there, each link leads somewhere, and the search finds a key of a spec."""

from __future__ import annotations

import json

from embedded.clone import CLONE
from embedded.documentation import site


def test_the_site_has_all_pages_and_a_search() -> None:
    assert site.main() == 0, "`make site` names the links"
    html = CLONE / "data" / "site" / "html"
    pages = {path.relative_to(CLONE).with_suffix(".html") for path in (CLONE / "docs").rglob("*.md")}
    assert len(pages) > 60
    assert [page for page in pages if not (html / page.with_name(page.name.replace("README", "index"))).is_file()] == []
    index = json.loads((html / "search" / "search_index.json").read_text())["docs"]
    assert "docs/reference/bronze.html" in {
        found["location"].partition("#")[0] for found in index if "min_age" in found["text"]
    }

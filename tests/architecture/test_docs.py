"""The documentation: the glossary stays short, and links lead somewhere."""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path

import pytest

from tests import foreign_readers

GLOSSARY = Path("docs/glossary.md")
OPERATORS, EXAMPLES = Path("docs/guides/use-the-operators.md"), Path("docs/examples")
MOST_WORDS = 32
PAGES = sorted(
    [
        *Path().glob("*.md"),
        *(page for folder in ("docs", "benchmarks", "spark_jobs") for page in Path(folder).rglob("*.md")),
    ]
)
DRAWN = {"flow.svg"}
"""The pictures that no command makes."""
MOST_BYTES = 100_000
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    """Return the targets of all links and pictures of a page that lead to files of this repository."""
    return [target for target in LINK.findall(page.read_text()) if "://" not in target]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", re.sub(LINK, "", title).lower()).replace(" ", "-") for title in titles}


def test_the_readme_names_the_two_commands_with_which_everybody_begins() -> None:
    readme = Path("README.md").read_text()
    assert [command for command in ("make demo", "make test") if f"{command} " not in readme] == []


def test_the_glossary_has_few_words_and_each_leads_to_a_page() -> None:
    words = re.findall(r"^- \*\*.+(?:\n  .+)*", GLOSSARY.read_text(), flags=re.MULTILINE)
    assert 0 < len(words) <= MOST_WORDS
    assert [word for word in words if not re.search(r"\]\((guides|reference|adr)/", word)] == []


def test_the_guide_to_the_operators_quotes_the_examples_that_tests_run() -> None:
    guide = OPERATORS.read_text()
    quoted = re.findall(r"^```(?:python|yaml)\n(.*?)^```$", guide, flags=re.MULTILINE | re.DOTALL)
    of_other_guides = {EXAMPLES / name for name in ("expectations", "queries", "reference")}
    paths = [path for path in EXAMPLES.rglob("*") if path.suffix in (".py", ".yaml")]
    files = {path: path.read_text() for path in paths if of_other_guides.isdisjoint(path.parents)}
    assert len(files) > 4
    parts = {path: [text for text in quoted if whole.endswith(text)] for path, whole in files.items()}
    assert sorted(text for texts in parts.values() for text in texts) == sorted(quoted)
    linked = {(OPERATORS.parent / target).resolve() for target in links(OPERATORS)}
    assert [path for path, texts in parts.items() if texts != [files[path]] and path.resolve() not in linked] == []
    assert all(parts.values())


def test_other_guides_quote_the_examples_that_tests_run() -> None:
    (expectations,) = (EXAMPLES / "expectations").glob("*.py")
    (part,) = re.findall(r"```python\n(.*?)```", Path("docs/guides/check-a-table.md").read_text(), flags=re.DOTALL)
    assert expectations.read_text().endswith(part)
    dags = Path("include/millrace/new_project/dags/shop.py")
    assert f"```python\n{dags.read_text()}```\n" in Path("docs/guides/add-to-your-airflow.md").read_text()


def test_whoever_runs_make_test_runs_every_test_of_what_is_promised_of_security() -> None:
    tests = {Path(target) for target in links(Path("SECURITY.md")) if target.startswith("tests/")}
    assert len(tests) > 25
    assert [path for path in tests if re.search(r"\bmark\.(slow|faults)\b", path.read_text())] == []


def test_links_lead_to_a_file_and_a_heading() -> None:
    broken = []
    for page in PAGES:
        for target in links(page):
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page.resolve()
            if not file.exists() or (anchor and anchor not in anchors(file)):
                broken.append(f"{page}: {target}")
    assert broken == []
    assert all(str(GLOSSARY) in links(Path(page)) for page in ("README.md", "CONTRIBUTING.md"))


def test_the_tests_that_a_page_names_exist() -> None:
    named = [(str(page), name) for page in PAGES for name in re.findall(r"\btest_\w+\.py\b", page.read_text())]
    assert len(named) > 100
    files = {path.name for path in Path("tests").rglob("test_*.py")}
    assert [(page, name) for page, name in named if name not in files] == []


def test_each_picture_is_taken_by_make_screenshots_and_a_page_shows_it() -> None:
    # Imported here, because it brings Playwright with it.
    from demo.screenshots.pictures import PICTURES

    endings = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg")
    pictures = [path.resolve() for path in Path("docs").rglob("*") if path.suffix in endings]
    assert sorted(path.name for path in pictures) == sorted({*PICTURES, *DRAWN})
    shown = {(page.parent / target).resolve() for page in PAGES for target in links(page)}
    assert [path for path in pictures if path not in shown] == []
    assert [path for path in pictures if path.stat().st_size > MOST_BYTES] == []


@pytest.mark.parametrize(
    ("reader", "package"), [("DuckDB", "duckdb"), ("Polars", "polars"), ("deltalake", "deltalake")]
)
def test_the_list_of_what_other_readers_lose_is_of_the_installed_versions(reader: str, package: str) -> None:
    listed = foreign_readers.GUIDE.read_text().partition(foreign_readers.BEGIN)[2].partition(foreign_readers.END)[0]
    assert f"- {reader} {version(package)}, " in listed, "make readers"

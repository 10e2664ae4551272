"""Data Docs: render the gate results of a run as pages of Great Expectations. The import takes seconds.

Great Expectations' own pages load styles, scripts and pictures from seven other hosts. These pages load only files in
their folder: they use the styles of Spark's own pages, and contain no script.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from pathlib import Path

from great_expectations.render import RenderedSectionContent, RenderedTableContent
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

from millrace.contracts.interval import Interval
from millrace.contracts.time_format import SECOND
from millrace.control.gates.gates import RecordedResult
from millrace.control.gates.result import GateResult
from millrace_spark.quality.gx.results import suite_result
from millrace_spark.quality.verdicts.verdict import describe_result

INDEX = "index.html"
STYLES = ("bootstrap.min.css", "data_docs.css")

_BOOTSTRAP = "org/apache/spark/ui/static/bootstrap.min.css"
_SCRIPTS_AND_FOOTERS = re.compile(r"<(script|footer)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_LINKS_AND_IMAGES = re.compile(r"<(?:link|img)\b[^>]*>", re.IGNORECASE)
_CSS_URLS = re.compile(r"url\([^)]*\)", re.IGNORECASE)
_INDEX_LINK = re.compile(r'href="(?:\.\./)+index\.html"')
_SUITE_LINK = re.compile(r'<a href="(?:\.\./)+expectations/[^"]*"\s*>(.*?)</a>')
_STYLES_WITHOUT_SCRIPTS = """
.collapse:not(.show) { display: block; }
a[data-toggle], button[data-toggle], .sticky > .card.mb-3, .modal, .navbar-brand, footer { display: none; }
.fa-check-circle::before { content: "\\2714"; }
.fa-times::before { content: "\\2718"; }
.fa-exclamation-triangle::before { content: "\\26A0"; }
i { font-style: normal; }
:root { color-scheme: light dark; }
@media (prefers-color-scheme: dark) {
  html, body { background-color: #18181b !important; }
  body * { background-color: transparent !important; color: #e4e4e7 !important; border-color: #52525b !important; }
  body a { color: #93c5fd !important; }
  body .badge { background-color: #3f3f46 !important; }
  body .text-success { color: #4ade80 !important; }
  body .text-danger { color: #f87171 !important; }
  body .text-warning { color: #facc15 !important; }
}
"""
_POLICY = (
    '<meta http-equiv="Content-Security-Policy" '
    "content=\"default-src 'none'; style-src 'self' file: 'unsafe-inline'; base-uri 'none'; form-action 'none'\">"
)
"""For a page that a person opens from a folder: it has no web server that would send a policy."""
_INDEX_PAGE = """<!DOCTYPE html>
<html><head><title>{title}</title><meta charset="UTF-8"></head>
<body><div class="container-fluid p-5"><h4>{title}</h4>
<table class="table table-sm mt-4">
<thead><tr><th>table</th><th>data of</th><th>version</th><th>checked</th><th></th></tr></thead>
<tbody>{rows}</tbody></table></div></body></html>
"""
_TITLES = re.compile(r"<title>.*?</title>", re.DOTALL)


@dataclass(frozen=True)
class CheckedTable:
    """A result to show.

    Attributes:
        recorded: the recorded result of a version.
        rows: the number of rows of that version; None if it is not known any more.
        interval: the interval of the batch that made the version; None if it is not known any more.
    """

    recorded: RecordedResult
    rows: int | None
    interval: Interval | None

    @property
    def title(self) -> str:
        """Table, day and version, as the browser's tab and the page name them."""
        result = self.recorded.result
        day = f", data of {self.interval.label} (UTC)" if self.interval else ""
        return f"{result.table}{day}, version {result.version}"


def write_pages(run_id: str, tables: Sequence[CheckedTable], folder: Path) -> None:
    """Write the pages of a run into `folder`: `<layer>.<name>.html` for each table, and an index.

    Args:
        run_id: the run, as the pages name it.
        tables: the result of each table.
        folder: the folder of the pages.
    """
    for table in tables:
        page = _with_styles_and_policy(_page(run_id, table))
        (folder / f"{table.recorded.result.table}.html").write_text(page, encoding="utf-8")
    lines = "".join(_index_line(table) for table in tables)
    index = _INDEX_PAGE.format(title=escape(f"Data Docs of {run_id}"), rows=lines)
    (folder / INDEX).write_text(_with_styles_and_policy(index), encoding="utf-8")
    # The pages need Bootstrap 4, which Spark's own pages have.
    [jar] = Path(str(files("pyspark"))).glob("jars/spark-core_*.jar")
    with zipfile.ZipFile(jar) as archive:
        (folder / STYLES[0]).write_bytes(archive.read(_BOOTSTRAP))
    (folder / STYLES[1]).write_text(_STYLES_WITHOUT_SCRIPTS, encoding="utf-8")


def _page(run_id: str, table: CheckedTable) -> str:
    recorded = table.recorded
    document = ValidationResultsPageRenderer().render(suite_result(recorded.result, run_id, recorded.at, table.rows))
    document.sections.append(_rules_of_the_spec(recorded.result))
    page = DefaultJinjaPageView().render(document)
    offline = _CSS_URLS.sub("none", _LINKS_AND_IMAGES.sub("", _SCRIPTS_AND_FOOTERS.sub("", page)))
    title = escape(table.title)
    titled = _TITLES.sub("", offline).replace("<head>", f"<head><title>{title}</title>", 1)
    headed = titled.replace("<body>", f'<body><h4 class="pt-4 pl-5">{title}</h4>', 1)
    return _SUITE_LINK.sub(r"\1", _INDEX_LINK.sub(f'href="{INDEX}"', headed))


def _rules_of_the_spec(result: GateResult) -> RenderedSectionContent:
    """Return a section with what Great Expectations does not show.

    This is the reason of each rule, the rows that it was judged by, and who overrode it.
    """
    rows = []
    for check in result.checks:
        outcome = "passed" if check.passed and not check.not_judged else describe_result(check)
        overridden = str(result.override) if check.overridden else ""
        cells = (check.rule, check.action, check.reason, outcome, check.judged_by, overridden)
        rows.append([escape(text) for text in cells])
    table = RenderedTableContent(
        header_row=["rule", "when it fails", "why it exists", "result", "judged by", "overridden"],
        table=rows,
        styling={"body": {"classes": ["table", "table-sm"]}},
    )
    return RenderedSectionContent(section_name="Rules of the spec", content_blocks=[table])


def _index_line(table: CheckedTable) -> str:
    recorded, result = table.recorded, table.recorded.result
    outcome = str(result.override or ("passed" if result.passed else "refused"))
    day = table.interval.label if table.interval else ""
    texts = (day, str(result.version), f"{recorded.at:{SECOND}} UTC", outcome)
    cells = "".join(f"<td>{escape(text)}</td>" for text in texts)
    return f'<tr><td><a href="{result.table}.html">{result.table}</a></td>{cells}</tr>'


def _with_styles_and_policy(page: str) -> str:
    first, last = (f'<link rel="stylesheet" href="{name}">' for name in STYLES)
    return page.replace("<head>", f"<head>{_POLICY}{first}", 1).replace("</head>", f"{last}</head>", 1)

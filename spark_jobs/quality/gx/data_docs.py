"""Data Docs: the pages of Great Expectations for what the gates of a run said. Importing this costs seconds.

Great Expectations' own pages load styles, scripts and pictures from seven other hosts. These load nothing but what
lies beside them: their styles are those of Spark's own pages, and no script is left in them.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from great_expectations.render import RenderedSectionContent, RenderedTableContent
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

from include.contracts.job.report import CheckResult
from include.contracts.time_format import SECOND
from include.control.gates.gates import RecordedResult
from include.control.gates.result import GateResult
from spark_jobs.quality.gx.results import suite_result
from spark_jobs.quality.verdicts.verdict import what_was_found

INDEX = "index.html"
STYLES = ("bootstrap.min.css", "data_docs.css")

_BOOTSTRAP = "org/apache/spark/ui/static/bootstrap.min.css"
_UNWANTED = re.compile(r"<(script|footer)\b.*?</\1\s*>", re.DOTALL | re.IGNORECASE)
_LOADS = re.compile(r"<(?:link|img)\b[^>]*>", re.IGNORECASE)
_CSS_LOADS = re.compile(r"url\([^)]*\)", re.IGNORECASE)
_TO_INDEX = re.compile(r'href="(?:\.\./)+index\.html"')
_TO_SUITE = re.compile(r'<a href="(?:\.\./)+expectations/[^"]*"\s*>(.*?)</a>')
_WITHOUT_SCRIPTS = """
.collapse:not(.show) { display: block; }
a[data-toggle], button[data-toggle], .sticky > .card.mb-3, .modal, .navbar-brand, footer { display: none; }
.fa-check-circle::before { content: "\\2714"; }
.fa-times::before { content: "\\2718"; }
.fa-exclamation-triangle::before { content: "\\26A0"; }
i { font-style: normal; }
"""
_LIST = """<!DOCTYPE html>
<html><head><title>{title}</title><meta charset="UTF-8"></head>
<body><div class="container-fluid p-5"><h4>{title}</h4>
<table class="table table-sm mt-4"><thead><tr><th>table</th><th>version</th><th>judged</th><th></th></tr></thead>
<tbody>{rows}</tbody></table></div></body></html>
"""


def write_pages(run_id: str, judged: Sequence[tuple[RecordedResult, int | None]], folder: Path) -> None:
    """Write the pages of a run into `folder`: `<layer>.<name>.html` for each table, and a list of them.

    Args:
        run_id: the run, as the pages name it.
        judged: what was recorded of a version of each table, and how many rows it has where that is known.
        folder: where they go.
    """
    for recorded, rows in judged:
        (folder / f"{recorded.result.table}.html").write_text(
            _beside_its_styles(_page(run_id, recorded, rows)), encoding="utf-8"
        )
    listed = _list(run_id, [recorded for recorded, _ in judged])
    (folder / INDEX).write_text(_beside_its_styles(listed), encoding="utf-8")
    (folder / STYLES[0]).write_bytes(_bootstrap())
    (folder / STYLES[1]).write_text(_WITHOUT_SCRIPTS, encoding="utf-8")


def _page(run_id: str, recorded: RecordedResult, rows: int | None) -> str:
    document = ValidationResultsPageRenderer().render(suite_result(recorded.result, run_id, recorded.at, rows))
    document.sections.append(_from_the_spec(recorded.result))
    page = DefaultJinjaPageView().render(document)
    own = _CSS_LOADS.sub("none", _LOADS.sub("", _UNWANTED.sub("", page)))
    return _TO_SUITE.sub(r"\1", _TO_INDEX.sub(f'href="{INDEX}"', own))


def _from_the_spec(result: GateResult) -> RenderedSectionContent:
    """Every rule once more, with what Great Expectations does not know of it: why it exists, and who overrode it."""
    table = RenderedTableContent(
        header_row=["rule", "when it fails", "why it exists", "found", "overridden"],
        table=[[escape(text) for text in _cells(check, result)] for check in result.checks],
        styling={"body": {"classes": ["table", "table-sm"]}},
    )
    return RenderedSectionContent(section_name="Rules of the spec", content_blocks=[table])


def _cells(check: CheckResult, result: GateResult) -> tuple[str, ...]:
    found = "passed" if check.passed and not check.not_judged else what_was_found(check)
    return check.rule, check.action, check.reason, found, str(result.override) if check.overridden else ""


def _list(run_id: str, judged: Sequence[RecordedResult]) -> str:
    rows = "".join(
        f'<tr><td><a href="{one.result.table}.html">{one.result.table}</a></td><td>{one.result.version}</td>'
        f"<td>{one.at:{SECOND}} UTC</td><td>{escape(_said(one.result))}</td></tr>"
        for one in judged
    )
    return _LIST.format(title=escape(f"Data Docs of {run_id}"), rows=rows)


def _said(result: GateResult) -> str:
    if result.override:
        return str(result.override)
    return "passed" if result.passed else "refused"


def _beside_its_styles(page: str) -> str:
    first, last = (f'<link rel="stylesheet" href="{name}">' for name in STYLES)
    return page.replace("<head>", f"<head>{first}", 1).replace("</head>", f"{last}</head>", 1)


def _bootstrap() -> bytes:
    """The style sheet of Bootstrap 4, for which the pages are written, as Spark has it for its own."""
    [jar] = Path(str(files("pyspark"))).glob("jars/spark-core_*.jar")
    with zipfile.ZipFile(jar) as held:
        return held.read(_BOOTSTRAP)

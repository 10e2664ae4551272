"""Data Docs: render the gate results of a run as pages of Great Expectations. The import takes seconds.

Great Expectations' own pages load styles, scripts and pictures from seven other hosts. These pages load only files in
their folder: they use the styles of Spark's own pages, and contain no script.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

import great_expectations as gx
from great_expectations.core import ExpectationSuiteValidationResult, ExpectationValidationResult
from great_expectations.core.run_identifier import RunIdentifier
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.render import RenderedSectionContent, RenderedTableContent
from great_expectations.render.renderer import ValidationResultsPageRenderer
from great_expectations.render.view import DefaultJinjaPageView

from millrace.contracts.counted import counted
from millrace.contracts.interval import Interval
from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.expectation import Action
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, OWN_EXPECTATIONS
from millrace.contracts.time_format import SECOND
from millrace.control.gates.gates import RecordedResult
from millrace.control.gates.result import GateResult
from millrace.errors import SpecError
from millrace_spark.quality.gx.classes import expectation_class
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


_SEVERITY = {Action.FAIL: "critical", Action.WARN: "warning"}


def suite_result(
    result: GateResult, run_id: str, checked_at: datetime, rows: int | None
) -> ExpectationSuiteValidationResult:
    """Return a gate's result for one version as a result of Great Expectations.

    Args:
        result: the gate's result; an overridden one is no success. Rules with wrong arguments and Millrace's own rules
            are left out, because Great Expectations cannot render them.
        run_id: the id of the run, which the page of Data Docs shows.
        checked_at: when the gate checked the version.
        rows: rows of the version, for shares; None if the number is not known any more.
    """
    checks = [_check(check, rows) for check in result.checks if _is_renderable(check)]
    passed = sum(check.passed for check in result.checks)
    return ExpectationSuiteValidationResult(
        success=result.passed and result.override is None,
        results=checks,
        suite_name=result.table,
        suite_parameters={},
        statistics={
            "evaluated_expectations": len(result.checks),
            "successful_expectations": passed,
            "unsuccessful_expectations": len(result.checks) - passed,
            "success_percent": 100 * passed / len(result.checks) if result.checks else None,
        },
        meta={
            "great_expectations_version": gx.__version__,
            "run_id": RunIdentifier(run_name=run_id, run_time=checked_at),
            "batch_spec": {"data_asset_name": f"version {result.version}"},
        },
    )


def _is_renderable(check: CheckResult) -> bool:
    """Whether Great Expectations knows the rule and accepts its arguments: otherwise it renders no page at all.

    It does not know a rule of the project's own whose file cannot be run any more.
    """
    if _name(check) in OWN_EXPECTATIONS or _name(check) not in ARGUMENTS:
        return False
    try:
        expectation_class(_name(check))(**_arguments(check))
    except (ValueError, SpecError):  # also pydantic's errors
        return False
    return True


def _check(check: CheckResult, rows: int | None) -> ExpectationValidationResult:
    return ExpectationValidationResult(
        success=check.passed,
        expectation_config=ExpectationConfiguration(
            type=_name(check), kwargs=_arguments(check), severity=check.severity or _SEVERITY[Action(check.action)]
        ),
        result=_details(check, rows),
        exception_info={
            "raised_exception": bool(check.error),
            "exception_message": check.error,
            "exception_traceback": "",
        },
        meta={},
    )


def _name(check: CheckResult) -> str:
    return check.rule.partition("(")[0]


def _arguments(check: CheckResult) -> dict[str, Any]:
    """Return the rule's arguments; the names of columns come from the rule's text, by their order."""
    columns = [column for column in check.rule.removesuffix(")").partition("(")[2].split(", ") if column]
    fields = expectation_class(_name(check)).__fields__
    if "column_list" in fields:
        return {"column_list": columns, **check.expected}
    named = zip((key for key in ("column", "column_A", "column_B") if key in fields), columns, strict=False)
    return {**dict(named), **check.expected}


def _details(check: CheckResult, rows: int | None) -> dict[str, Any]:
    """Return the details of the result, with the share of unexpected rows if both counts are known."""
    unexpected = check.unexpected_rows
    details: dict[str, Any] = {"partial_unexpected_list": list(map(_escaped, check.samples)), "unexpected_count": 0}
    if _name(check) == "expect_table_columns_to_match_ordered_list":
        details["observed_value"] = []  # Great Expectations renders no page without it.
    # Only this renderer of Great Expectations expects numbers by key; json_safe made them from its own result.
    is_quantiles = _name(check) == "expect_column_quantile_values_to_be_between"
    if check.observed is not None and not (is_quantiles and check.observed == RESTRICTED):
        details["observed_value"] = check.observed if is_quantiles else _escaped(check.observed)
    if unexpected and rows:
        share = 100 * unexpected / rows
        return {**details, "unexpected_count": unexpected, "element_count": rows, "unexpected_percent": share}
    return {"observed_value": counted(unexpected, "unexpected row"), **details} if unexpected else details


def _escaped(value: Any) -> Any:
    """Return `value` as text without markup: Great Expectations does not escape values in its pages."""
    if isinstance(value, bool | int | float):
        return value
    return escape(", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))

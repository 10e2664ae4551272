"""Data Docs of recorded results: every expectation has its lines, what was found is no markup, nothing is loaded."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from datetime import UTC, datetime
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from embedded.clone import CLONE
from millrace.contracts.interval import Interval
from millrace.contracts.job.args import CheckedVersion, DataDocsArgs
from millrace.contracts.job.report import CheckResult
from millrace.contracts.restricted import RESTRICTED
from millrace.contracts.spec.arguments import Arguments
from millrace.contracts.spec.custom_expectations import CustomExpectation
from millrace.contracts.spec.expectation_arguments import ARGUMENTS, CUSTOM_EXPECTATIONS, OWN_EXPECTATIONS
from millrace.control.gates.gates import Gates, RecordedResult
from millrace.control.gates.result import GateResult, Override
from millrace.errors import NotReadyError
from millrace.paths import LakehousePaths, RunPaths
from millrace_spark.jobs.data_docs import build
from millrace_spark.quality.verdicts.verdict import carried_check
from tests.support.ledger.delta_tables import append, clean_log, create_table
from tests.support.texts import ODD_TEXTS

AT = datetime(2013, 1, 5, 10, tzinfo=UTC)
DAY = Interval(start=datetime(2013, 1, 4, tzinfo=UTC), end=datetime(2013, 1, 5, tzinfo=UTC))
RUN = "scheduled__2013-01-05T00:00:00+00:00"
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
INDEX, STYLES = "index.html", ("bootstrap.min.css", "data_docs.css")
EXPECTED: dict[str, dict[str, Any]] = {
    "pair_values_to_be_in_set": {"value_pairs_set": [["a", "b"]]},
    "kl_divergence": {"partition_object": {"values": ["a"], "weights": [1.0]}, "threshold": 0.1},
    "quantile": {"quantile_ranges": {"quantiles": [0.5], "value_ranges": [[1, 9]]}},
    "type_list": {"type_list": ["IntegerType"]},
    "type": {"type_": "IntegerType"},
    "z_scores": {"threshold": 2, "double_sided": True},
    "json_schema": {"json_schema": {"type": "object"}},
    "regex_list": {"regex_list": ["^a<b>$"]},
    "strftime": {"strftime_format": "%Y"},
    "sum_to_equal": {"sum_total": 3},
    "outliers": {"method": "iqr"},
    "ordered_list": {"column_list": ["a", "b"]},
    "column_pair_values_to_be_equal": {},
    "multicolumn_values_to_be_equal": {},
    "columns_to_match": {"column_set": ["a", "b"]},
    "set": {"value_set": ["a", "b"]},
    "regex": {"regex": "^a<b>$"},
    "between": {"min_value": 1, "max_value": 9},
    "to_equal": {"value": 3},
}


def docs() -> ModuleType:
    """Return the module that writes pages. It imports Great Expectations, which a worker without these tests spares."""
    return import_module("millrace_spark.quality.gx.data_docs")


class Page(HTMLParser):
    """The tags of a page with what they load, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.loads: list[str] = []
        self.handlers: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        named = dict(attrs)
        self.loads += [str(named["src"])] if "src" in named else []
        self.loads += [str(named["href"])] if tag == "link" else []
        self.handlers += [name for name in named if name == "onerror"]

    def handle_data(self, data: str) -> None:
        self.text += f" {data.strip()}"


def result(*checks: CheckResult, table: str = "silver.flights", override: Override | None = None) -> RecordedResult:
    passed = override is not None or not any(check.refuses for check in checks)
    said = GateResult(
        table=table, table_id="1", version=7, suite_hash="s", passed=passed, checks=checks, override=override
    )
    return RecordedResult(AT, said)


def page_of(recorded: RecordedResult, folder: Path, rows: int | None = 5) -> Page:
    docs().write_pages(RUN, [docs().CheckedTable(recorded, rows, DAY)], folder)
    return Page((folder / f"{recorded.result.table}.html").read_text())


def rule(name: str) -> str:
    if any(part in name for part in ("compound", "pair", "multicolumn", "select_column", "ordered_list")):
        return f"{name}(a, b)"
    return f"{name}()" if name.startswith("expect_table") else f"{name}(a)"


def test_every_expectation_has_its_lines(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    names, checks = sorted(ARGUMENTS.keys() - OWN_EXPECTATIONS), list[CheckResult]()
    for name in names:
        expected = next((given for part, given in EXPECTED.items() if part in name), {})
        observed = {"quantiles": [0.5], "values": [12]} if "quantile" in name else [1, "c"]
        about: dict[str, Any] = {"rule": rule(name), "expected": expected}
        checks += [
            CheckResult(**about, action="fail", passed=True),
            CheckResult(**about, action="warn", passed=False, observed=observed, samples=("c",)),
            CheckResult(**about, action="fail", passed=False, unexpected_rows=2, samples=(1, 2)),
            CheckResult(**about, action="fail", passed=False, observed=RESTRICTED, samples=(RESTRICTED,)),
            CheckResult(**about, action="fail", passed=False, error="there is no column a"),
        ]
    with caplog.at_level(logging.WARNING):
        text = page_of(result(*checks), tmp_path).text
    assert "rendering" not in caplog.text + capfd.readouterr().err, "Great Expectations could not draw it"
    assert text.count("2 unexpected values found. 40% of 5 total rows.") == len(names) > 40
    assert text.count("there is no column a") >= len(names)
    assert text.count(RESTRICTED) >= len(names)
    assert [name for name in names if text.count(f"{rule(name)} ") < 5] == []


def test_each_rule_says_which_rows_it_was_judged_by_also_one_that_great_expectations_lacks(tmp_path: Path) -> None:
    ways = {"expect_column_to_exist(a)": "the change since version 6", "rows_equal_their_sources()": "all rows"}
    checks = [CheckResult(rule=name, action="fail", passed=True, judged_by=way) for name, way in ways.items()]
    for name in sorted(OWN_EXPECTATIONS):
        failed = {"action": "fail", "passed": False, "unexpected_rows": 2, "samples": ("c",), "against": "version 4"}
        checks.append(CheckResult(rule=rule(name), **failed))
        checks.append(CheckResult(rule=rule(name), action="warn", passed=True, not_judged="1 of 7 versions are known"))
    text = page_of(result(*checks, *carried_check({"rows": (2, 3)})), tmp_path).text
    for part in (*ways, *ways.values(), "rows: 2 by the changes, 3 in all rows"):
        assert part in text
    assert [name for name in OWN_EXPECTATIONS if text.count(rule(name)) != 2] == []
    assert text.count("is failed by 2 rows, such as c, against version 4") == len(OWN_EXPECTATIONS)
    assert text.count("was not checked: 1 of 7 versions are known") == len(OWN_EXPECTATIONS)


def test_a_page_says_version_run_counts_reasons_and_who_overrode(tmp_path: Path) -> None:
    said = Override(by="ann", reason="a holiday", run_id="manual__1", at=AT)
    checks = (
        CheckResult(rule="expect_column_to_exist(a)", action="fail", passed=True, reason="it is the key"),
        CheckResult(rule="expect_column_to_exist(b)", action="fail", passed=False, overridden=True, reason="it was"),
    )
    assert "Succeeded" in page_of(result(), tmp_path).text, "a version without rules has a page"
    failed = CheckResult(rule="expect_column_values_to_be_unique(a)", action="fail", passed=False, unexpected_rows=2)
    assert "2 unexpected rows" in page_of(result(failed), tmp_path, rows=None).text, "nobody knows its rows"
    page = page_of(result(*checks, override=said), tmp_path)
    titles = re.findall(r"<title>(.*?)</title>", (tmp_path / "silver.flights.html").read_text())
    assert titles == ["silver.flights, data of 2013-01-04 (UTC), version 7"]
    for part in ("silver.flights", "version 7", RUN, "Failed", "50%", "it is the key", "it was"):
        assert part in page.text
    assert "certified by hand by ann at 2013-01-05 10:00 UTC: a holiday" in page.text


def test_any_text_stands_on_a_page_as_it_was_found(tmp_path: Path) -> None:
    """But for white space, which HTML folds, and NUL, which it cannot hold."""
    failed = CheckResult(rule="expect_column_values_to_be_unique(a)", action="fail", passed=False, unexpected_rows=1)
    checks = [failed.model_copy(update={"reason": f"why {text}", "samples": (text,)}) for text in ODD_TEXTS]
    shown = "".join(page_of(result(*checks), tmp_path).text.split()).replace("\0", "\ufffd")
    for text in ODD_TEXTS:
        wanted = "".join(text.split()).replace("\0", "\ufffd")
        assert shown.count(wanted) >= 2, text
        assert f"why{wanted}" in shown


def test_a_rule_whose_arguments_are_wrong_is_named_with_its_error_and_hides_no_other(tmp_path: Path) -> None:
    wrong = {
        "rule": "expect_column_values_to_be_unique(a)",
        "expected": {"mostly": "x"},
        "error": "mostly is no number",
    }
    sound = CheckResult(rule="expect_column_to_exist(a)", action="fail", passed=True, reason="it is the key")
    text = page_of(result(CheckResult(action="fail", passed=False, **wrong), sound), tmp_path).text
    assert re.search(r"expect_column_values_to_be_unique\(a\) +fail .*mostly is no number", text)
    assert "it is the key" in text
    assert re.search("Evaluated Expectations +2", text)


def test_a_rule_whose_file_cannot_be_run_anymore_hides_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    custom = CustomExpectation(Arguments())
    monkeypatch.setitem(CUSTOM_EXPECTATIONS, "expect_luck", custom)
    monkeypatch.setitem(ARGUMENTS, "expect_luck", custom.arguments)
    monkeypatch.setattr(import_module("millrace_spark.quality.gx.classes"), "EXPECTATIONS", tmp_path)
    (tmp_path / "luck.py").write_text("import no_such_module\n")
    check = CheckResult(rule="expect_luck()", action="fail", passed=False, reason="it was lucky")
    text = page_of(result(check), tmp_path).text
    assert re.search(r"expect_luck\(\) +fail +it was lucky", text)


def test_what_was_found_is_no_markup_and_stays_readable(tmp_path: Path) -> None:
    def evil(field: str) -> str:
        return EVIL.replace("'x'", f"'{field}'")

    given = {"rule": "expect_column_values_to_match_regex(a)", "action": "fail", "passed": False, "overridden": True}
    found = {name: evil(name) for name in ("reason", "observed", "error")}
    found |= {"samples": (evil("samples"),), "expected": {"regex": evil("expected")}}
    checks = [CheckResult.model_validate({**given, field: value}) for field, value in found.items()]
    said = Override(by=evil("person"), reason=evil("why"), run_id="r", at=AT)
    docs().write_pages(evil("run"), [docs().CheckedTable(result(*checks, override=said), 5, None)], tmp_path)
    pages = [Page((tmp_path / name).read_text()) for name in ("silver.flights.html", INDEX)]
    assert [("script" in page.tags, page.handlers) for page in pages] == [(False, [])] * 2
    shown = "".join(page.text for page in pages).replace("\u2019", "'")
    assert [field for field in (*found, "person", "why", "run") if f"alert('{field}')" not in shown] == []


def test_the_pages_load_nothing_but_what_lies_beside_them(tmp_path: Path) -> None:
    failed = CheckResult(rule="expect_column_to_exist(b)", action="fail", passed=False)
    tables = [docs().CheckedTable(result(failed), 5, DAY), docs().CheckedTable(result(table="gold.routes"), 5, None)]
    docs().write_pages(RUN, tables, tmp_path)
    files = {INDEX, *STYLES, "silver.flights.html", "gold.routes.html"}
    assert {file.name for file in tmp_path.iterdir()} == files
    for file in tmp_path.iterdir():
        text = file.read_text()
        if file.suffix == ".html":
            assert set(Page(text).loads) <= set(STYLES)
            assert text.index("default-src 'none'") < text.index("stylesheet"), "a policy also for a page in a folder"
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", text)
        assert "<script" not in text
    assert "dark) {\n  html, body { background-color: #18181b" in (tmp_path / STYLES[1]).read_text()
    listed = Page((tmp_path / INDEX).read_text()).text
    assert re.search(r"silver\.flights 2013-01-04 7 .* refused", listed)
    assert re.search(r"gold\.routes +7 .* passed", listed)


TABLES = ("silver.orders", "gold.revenue")


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """Version 1 of two tables was judged: one was refused, one passed."""
    paths = LakehousePaths(tmp_path / "lake house")
    for table, passed in zip(TABLES, (False, True), strict=True):
        table_id = create_table(paths.table(table))
        version = append(paths.table(table), rows=4)
        found = {"passed": passed, "unexpected_rows": None if passed else 1}
        check = CheckResult(rule="expect_column_values_to_be_unique(n)", action="fail", **found)
        of_version = {"table": table, "table_id": table_id, "version": version, "suite_hash": "rules"}
        Gates(paths).record(GateResult(**of_version, passed=passed, checks=(check,)))
    return paths


@pytest.fixture
def args(paths: LakehousePaths, tmp_path: Path) -> DataDocsArgs:
    judged = tuple(CheckedVersion(table=table, version=1, suite_hash="rules") for table in TABLES)
    return DataDocsArgs(
        root=paths.root, folder=RunPaths(tmp_path).data_docs / "dag=a b" / f"run={RUN}", run_id=RUN, versions=judged
    )


def test_a_second_build_returns_the_same_pages_without_great_expectations(args: DataDocsArgs) -> None:
    name = build(args)
    code = (
        "import sys; from millrace_spark.jobs.data_docs import build, DataDocsArgs\n"
        "print(build(DataDocsArgs.from_argv(sys.argv[1:])))\n"
        "assert 'great_expectations' not in sys.modules and 'pyspark' not in sys.modules"
    )
    environment = {**os.environ, "PYTHONPATH": str(CLONE)}
    command = [sys.executable, "-c", code, *args.to_argv()]
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (again.returncode, again.stdout.strip()) == (0, name), again.stderr


def test_an_override_makes_other_pages_and_removes_the_old_pages(args: DataDocsArgs, paths: LakehousePaths) -> None:
    unknown = CheckedVersion(table=TABLES[0], version=1, suite_hash="other rules")
    with pytest.raises(NotReadyError, match="no result of its gates is recorded"):
        build(args.model_copy(update={"versions": (unknown,)}))
    before = build(args)
    pages = args.folder / before
    assert {page.name for page in pages.glob("*.html")} == {"index.html", *(f"{table}.html" for table in TABLES)}
    assert "25%" in (pages / "silver.orders.html").read_text(), "one of four rows"
    (args.folder / "partial-of-one-who-was-killed").mkdir()
    refused = Gates(paths).result(TABLES[0], 1, "rules")
    said = Override(by="ann", reason="a holiday", run_id="manual__1", at=datetime(2013, 1, 5, tzinfo=UTC))
    checks = tuple(check.model_copy(update={"overridden": True}) for check in refused.checks)
    Gates(paths).record_override(refused.model_copy(update={"passed": True, "override": said, "checks": checks}))
    after = build(args)
    assert after != before
    assert [folder.name for folder in args.folder.glob("*/")] == [after]
    assert "certified by hand by ann" in (args.folder / after / "silver.orders.html").read_text()


def test_a_version_whose_log_is_gone_has_a_page_without_shares(args: DataDocsArgs, paths: LakehousePaths) -> None:
    for _ in range(2):
        append(paths.table(TABLES[0]))
    clean_log(paths.table(TABLES[0]), below=3)
    page = args.folder / build(args) / "silver.orders.html"
    assert "1 unexpected row" in page.read_text()

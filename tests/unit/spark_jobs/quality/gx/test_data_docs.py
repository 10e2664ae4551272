"""Data Docs of recorded results: every expectation has its lines, what was found is no markup, nothing is loaded."""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from include.contracts.interval import Interval
from include.contracts.job.report import CheckResult
from include.contracts.spec.arguments import Arguments
from include.contracts.spec.custom_expectations import CustomExpectation
from include.contracts.spec.expectation_arguments import ARGUMENTS, CUSTOM_EXPECTATIONS, OWN_EXPECTATIONS
from include.control.gates.gates import RecordedResult
from include.control.gates.result import GateResult, Override
from spark_jobs.quality.gx import classes
from spark_jobs.quality.gx.data_docs import INDEX, STYLES, CheckedTable, write_pages
from spark_jobs.quality.verdicts.carried_figures import carried_check
from tests.support.texts import ODD_TEXTS

AT = datetime(2013, 1, 5, 10, tzinfo=UTC)
DAY = Interval(start=datetime(2013, 1, 4, tzinfo=UTC), end=datetime(2013, 1, 5, tzinfo=UTC))
RUN = "scheduled__2013-01-05T00:00:00+00:00"
EVIL = "<script>alert('x')</script><img src=x onerror=alert(1)>"
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
    write_pages(RUN, [CheckedTable(recorded, rows, DAY)], folder)
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
            CheckResult(**about, action="fail", passed=False, error="there is no column a"),
        ]
    with caplog.at_level(logging.WARNING):
        text = page_of(result(*checks), tmp_path).text
    assert "rendering" not in caplog.text + capfd.readouterr().err, "Great Expectations could not draw it"
    assert text.count("2 unexpected values found. 40% of 5 total rows.") == len(names) > 40
    assert text.count("there is no column a") >= len(names)
    assert [name for name in names if text.count(f"{rule(name)} ") < 4] == []


def test_each_rule_says_which_rows_it_was_judged_by_also_one_that_great_expectations_does_not_know(
    tmp_path: Path,
) -> None:
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
    assert "overridden by ann at 2013-01-05 10:00 UTC: a holiday" in page.text


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


def test_a_rule_whose_file_cannot_be_run_any_more_hides_no_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    custom = CustomExpectation(Arguments())
    monkeypatch.setitem(CUSTOM_EXPECTATIONS, "expect_luck", custom)
    monkeypatch.setitem(ARGUMENTS, "expect_luck", custom.arguments)
    monkeypatch.setattr(classes, "EXPECTATIONS", tmp_path)
    (tmp_path / "luck.py").write_text("import no_such_module\n")
    check = CheckResult(rule="expect_luck()", action="fail", passed=False, reason="it was lucky")
    text = page_of(result(check), tmp_path).text
    assert re.search(r"expect_luck\(\) +fail +it was lucky", text)


@pytest.mark.parametrize("field", ["reason", "observed", "samples", "error", "expected", "by", "run"])
def test_what_was_found_is_no_markup_and_stays_readable(field: str, tmp_path: Path) -> None:
    given: dict[str, Any] = {"rule": "expect_column_values_to_match_regex(a)", "action": "fail", "passed": False}
    more = {"samples": {"samples": (EVIL,)}, "expected": {"expected": {"regex": EVIL}}}
    check = CheckResult(**given, **more.get(field, {field: EVIL} if field in CheckResult.model_fields else {}))
    said = Override(by=EVIL, reason=EVIL, run_id="r", at=AT) if field == "by" else None
    check = check.model_copy(update={"overridden": said is not None})
    run = EVIL if field == "run" else RUN
    write_pages(run, [CheckedTable(result(check, override=said), 5, None)], tmp_path)
    texts = ""
    for file in (tmp_path / "silver.flights.html", tmp_path / INDEX):
        page = Page(file.read_text())
        assert "script" not in page.tags
        assert page.handlers == []
        texts += page.text
    assert "alert('x')" in texts or "alert('x')" in texts.replace("\u2019", "'")


def test_in_a_dark_browser_every_text_is_light_on_dark(tmp_path: Path) -> None:
    page_of(result(), tmp_path)
    styles = (tmp_path / STYLES[1]).read_text()
    assert "color-scheme: light dark" in styles
    _, dark = styles.split("@media (prefers-color-scheme: dark)")
    background, text = (re.search(rf"{what}[^}}]* {key}: (#\w+) !important", dark) for what, key in (
        ("html, body", "background-color"), (r"body \*", "color")))  # fmt: skip
    assert background
    assert text
    assert luminance(text[1]) > 0.7 > 0.05 > luminance(background[1])


def luminance(colour: str) -> float:
    """Return how bright `#rrggbb` is, from 0 to 1."""
    red, green, blue = ((int(colour[place : place + 2], 16) / 255) ** 2.2 for place in (1, 3, 5))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_the_pages_load_nothing_but_what_lies_beside_them(tmp_path: Path) -> None:
    failed = CheckResult(rule="expect_column_to_exist(b)", action="fail", passed=False)
    tables = [CheckedTable(result(failed), 5, DAY), CheckedTable(result(table="gold.routes"), 5, None)]
    write_pages(RUN, tables, tmp_path)
    assert {file.name for file in tmp_path.iterdir()} == {INDEX, "silver.flights.html", "gold.routes.html", *STYLES}
    for file in tmp_path.iterdir():
        text = file.read_text()
        assert set(Page(text).loads) <= set(STYLES) if file.suffix == ".html" else True
        assert not re.search(r"url\(\s*['\"]?(https?:)?//", text)
        assert "<script" not in text
    listed = Page((tmp_path / INDEX).read_text()).text
    assert re.search(r"silver\.flights 2013-01-04 7 .* refused", listed)
    assert re.search(r"gold\.routes +7 .* passed", listed)

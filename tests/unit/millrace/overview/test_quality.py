"""The rules of a table over time, and the sentence about the newest version."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from millrace.contracts.job.report import CheckResult
from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult, Override
from millrace.control.log.delta_log import latest_version
from millrace.overview.quality import MOST_RESULTS, Quality, quality_of
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, create_table

TABLE = "silver.flights"


def check(rule: str = "max(n)", *, passed: bool = True, action: str = "fail", **more: object) -> CheckResult:
    return CheckResult.model_validate({"rule": rule, "passed": passed, "action": action, **more})


class History:
    """The gate of a table whose versions exist."""

    def __init__(self, root: Path) -> None:
        self.paths = LakehousePaths(root)
        self.gates, path = Gates(self.paths), self.paths.table(TABLE)
        self.table_id = create_table(path)
        append(path)

    def judge(self, version: int, *checks: CheckResult, override: Override | None = None) -> None:
        passed = override is not None or not any(each.refuses for each in checks)
        while latest_version(self.paths.table(TABLE)) < version:
            append(self.paths.table(TABLE))
        self.gates.record(
            GateResult(
                table=TABLE, table_id=self.table_id, version=version, suite_hash="s", passed=passed, checks=checks,
                override=override,
            )
        )  # fmt: skip

    @property
    def quality(self) -> Quality:
        return quality_of(TABLE, self.gates, self.gates.verdicts(TABLE))


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path)


def test_the_sentence_counts_the_failed_rules_and_names_what_readers_use(history: History) -> None:
    history.judge(1, check("a"), check("b", passed=False, action="warn"))
    assert history.quality.answer == "1 of 2 rules failed as a warning on version 1; readers use it."
    history.judge(2, check("a", passed=False), check("b", passed=False, action="warn"))
    assert history.quality.answer == "2 of 2 rules failed on version 2; readers use version 1."
    history.judge(3, check("a"), check("b", not_judged="too short a past"))
    assert history.quality.answer == "Version 3 passed all 2 rules, 1 of them without a judgement yet; readers use it."
    history.judge(4)
    assert history.quality.answer == "The spec states no table rule; version 4 passed; readers use it."


def test_a_version_that_a_person_let_pass_names_the_person(history: History) -> None:
    history.judge(1, check(passed=False))
    assert history.quality.answer == "1 of 1 rule failed on version 1; readers have no certified version yet."
    overridden = check(passed=False, overridden=True)
    history.judge(
        1, overridden, override=Override(by="ann", reason="ok", run_id="r", at=datetime(2026, 1, 1, tzinfo=UTC))
    )
    assert history.quality.answer == "1 of 1 rule failed on version 1; readers use it, because ann has let it pass: ok."


def test_what_refuses_comes_first_and_each_rule_has_its_own_past(history: History) -> None:
    history.judge(1, check("a", observed=1), check("gone"), check("b", unexpected_rows=0))
    history.judge(2, check("a", observed=2), check("b", passed=False, unexpected_rows=3))
    history.judge(3, check("a", observed=None), check("b", passed=False, unexpected_rows=4), check("new", observed="x"))
    rules = history.quality.rules
    assert [rule.last.rule for rule in rules] == ["b", "a", "new"]
    assert [point.measure(may_see_rows=True) for point in rules[0].points] == [0, 3, 4]
    assert [point.version for point in (rules[0].failing_since,) if point] == [2]
    assert [point.measure(may_see_rows=True) for point in rules[1].points] == [1.0, 2.0, None]
    assert (rules[1].failing_since, rules[2].points[0].measure(may_see_rows=True)) == (None, None)


def test_only_the_newest_results_are_read(history: History) -> None:
    assert (history.quality.answer, history.quality.rules) == ("No gate has checked this table yet.", [])
    for version in (*[1] * (MOST_RESULTS + 2), 2):
        history.judge(version, check(observed=version), check(action="warn", observed=10 * version))
    assert len(history.quality.results) == MOST_RESULTS
    assert history.quality.results[-1].result.version == 2
    last = [[point.measure(may_see_rows=True) for point in rule.points[-2:]] for rule in history.quality.rules]
    assert last == [[1, 2], [10, 20]], "two rules that differ only in their bounds are two"

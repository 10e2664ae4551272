"""An override: which refusal it may be for, its effect on later gates, and that it happens once or never."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from millrace.contracts.job.report import CheckResult
from millrace.contracts.spec.table_spec import AnySpec, parse_spec
from millrace.control.events.event_log import EventLog
from millrace.control.gates.gates import Gates
from millrace.control.gates.overrides import override, override_note
from millrace.control.gates.result import Override
from millrace.errors import OverrideError
from millrace.paths import LakehousePaths
from tests.support.documents.specs import silver_document
from tests.support.ledger.delta_tables import append, create_table, optimize
from tests.support.ledger.delta_tables import judge as judge_version

TABLE = "silver.orders"
RULE = {"expect_table_row_count_to_be_between": {"max_value": 3}, "action": "fail", "reason": "three at most"}
RULE_NAME = "expect_table_row_count_to_be_between()"
SPEC = parse_spec(silver_document(expectations=[RULE]))
AT = datetime(2013, 1, 5, 10, tzinfo=UTC)


def judge(paths: LakehousePaths, version: int, *, passed: bool = False) -> None:
    """Record the gate's result for a version."""
    rule = SPEC.table_rules[0]
    check = CheckResult(rule=rule.rule, action="fail", passed=passed, reason=rule.reason, observed=4)
    judge_version(paths.root, SPEC, version, passed=passed, checks=(check,), batches=(f"main/{version}",))


def decision(by: str = "ann", reason: str = "a holiday", run_id: str = "manual__1") -> Override:
    """Return the override of a person."""
    return Override(by=by, reason=reason, run_id=run_id, at=AT)


@pytest.fixture
def gates(paths: LakehousePaths) -> Gates:
    """Version 0 is empty, 1 passed its gate, 2 was refused."""
    create_table(paths.table(TABLE))
    for passed in (True, False):
        judge(paths, append(paths.table(TABLE)), passed=passed)
    return Gates(paths)


def refuse_override(
    paths: LakehousePaths, version: int, cause: str, spec: AnySpec = SPEC, by: Override | None = None
) -> None:
    """Try an override, which must be refused for this cause."""
    with pytest.raises(OverrideError, match=cause):
        override(spec, version, by or decision(), paths)


def test_the_refused_version_is_certified_and_the_decision_recorded(paths: LakehousePaths, gates: Gates) -> None:
    assert gates.certified(TABLE) == 1
    assert override_note(TABLE, gates.verdicts(TABLE)) == ()
    override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == 2
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert (kept.passed, kept.override, kept.suite_hash, kept.batches) == (
        True,
        decision(),
        SPEC.suite_hash,
        ("main/2",),
    )
    [check] = kept.checks
    assert (check.rule, check.passed, check.overridden, check.refuses) == (RULE_NAME, False, True, False)
    [note] = override_note(TABLE, gates.verdicts(TABLE))
    assert note == (
        "readers use version 2 of silver.orders, certified by hand by ann at 2013-01-05 10:00 UTC: a holiday; "
        f"it had failed {RULE_NAME}"
    )
    rows = DeltaTable(str(paths.ops("gates"))).to_pyarrow_table().sort_by("recorded_at").to_pylist()
    assert [(row["version"], row["passed"], row["overridden_by"], row["override_reason"]) for row in rows] == [
        (1, True, None, None),
        (2, False, None, None),
        (2, True, "ann", "a holiday"),
    ]
    judge(paths, append(paths.table(TABLE)), passed=True)
    assert override_note(TABLE, gates.verdicts(TABLE)) == ()


def test_a_late_refusal_of_the_same_version_does_not_undo_an_override_and_one_of_a_later_version_stands(
    paths: LakehousePaths, gates: Gates
) -> None:
    override(SPEC, 2, decision(), paths)
    judge(paths, 2)
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert kept.override == decision()
    assert gates.certified(TABLE) == 2
    append(paths.table(TABLE))
    judge(paths, 3)
    assert gates.certified(TABLE) == 2
    first = gates.first_refusal(TABLE, above=2)
    assert first is not None
    assert first.version == 3, "the overridden version is not refused any more"


def test_versions_without_a_result_may_have_come_after_the_overridden_one(paths: LakehousePaths, gates: Gates) -> None:
    optimized = optimize(paths.table(TABLE))
    append(paths.table(TABLE))
    override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == optimized


def test_a_certified_version_that_new_rules_refuse_can_be_let_pass(paths: LakehousePaths, gates: Gates) -> None:
    override(SPEC, 2, decision(), paths)
    newer = parse_spec(silver_document(expectations=[{**RULE, "reason": "three, since monday"}]))
    rule = newer.table_rules[0]
    check = CheckResult(rule=rule.rule, action="fail", passed=False, reason=rule.reason, observed=4)
    judge_version(paths.root, newer, 2, passed=False, checks=(check,), batches=("main/2",))
    assert gates.certified(TABLE) == 2
    override(newer, 2, decision("bob", run_id="manual__2"), paths)
    kept = gates.result(TABLE, 2, newer.suite_hash)
    assert kept is not None
    assert (gates.certified(TABLE), kept.passed, kept.override) == (2, True, decision("bob", run_id="manual__2"))
    refuse_override(paths, 2, "certified by hand by bob", spec=newer, by=decision("eve", run_id="manual__3"))


def test_only_the_newest_refused_version_can_be_overridden_and_only_once(paths: LakehousePaths, gates: Gates) -> None:
    refuse_override(paths, 1, "version 1 passed its gate: there is nothing to override")
    for missing in (-1, 3):
        refuse_override(paths, missing, rf"has no version {missing}: its newest is 2\n.*gate show silver\.orders")
    append(paths.table(TABLE))
    refuse_override(paths, 3, "no gate has refused version 3; refused are 2")
    judge(paths, 3)
    refuse_override(paths, 2, r"(?s)version 3 came after 2, and .*override version 3 if both")
    assert gates.certified(TABLE) == 1
    override(SPEC, 3, decision(), paths)
    assert gates.certified(TABLE) == 3
    refuse_override(paths, 2, "readers use version 3, and never go back to 2")
    again = decision("bob", run_id="manual__2")
    refuse_override(paths, 3, "version 3 was certified by hand by ann at 2013-01-05 10:00 UTC: a holiday", by=again)


def test_an_override_needs_a_table_a_reason_the_rules_of_the_refusal_and_all_files(
    tmp_path: Path, paths: LakehousePaths, gates: Gates
) -> None:
    refuse_override(LakehousePaths(tmp_path / "other"), 0, r"silver\.orders was never built")
    refuse_override(paths, 2, "needs a reason", by=decision(reason=" "))
    changed = parse_spec(silver_document(expectations=[{**RULE, "reason": "four at most"}]))
    refuse_override(paths, 2, r"the rules, or a table .* changed since version 2 was refused", changed)
    Path(DeltaTable(str(paths.table(TABLE)), version=2).file_uris()[0]).unlink()
    refuse_override(paths, 2, "1 file of version 2 was removed by VACUUM")
    assert gates.certified(TABLE) == 1


def test_one_of_many_concurrent_overrides_wins(paths: LakehousePaths, gates: Gates) -> None:
    def attempt(number: int) -> str:
        try:
            result = override(SPEC, 2, decision(f"person {number}", run_id=f"manual__{number}"), paths)
        except OverrideError as error:
            return str(error)
        assert result.override is not None
        return result.override.by

    with ThreadPoolExecutor(6) as people:
        answers = list(people.map(attempt, range(6)))
    winners = [answer for answer in answers if answer.startswith("person")]
    results = [recorded.result for recorded in gates.results(TABLE)]
    assert [result.override.by for result in results if result.override] == winners
    assert len(winners) == 1
    others = [answer for answer in answers if answer not in winners]
    assert all("certified by hand by" in answer or "somebody else" in answer for answer in others)


class Died(BaseException):
    """The process ended here."""


@pytest.mark.parametrize(("when", "certified"), [("before", 1), ("after", 2)])
def test_a_killed_override_is_recorded_or_not_and_can_be_repeated(
    paths: LakehousePaths, gates: Gates, monkeypatch: pytest.MonkeyPatch, when: str, certified: int
) -> None:
    append_once = EventLog.append_once

    def append_and_die(*args: Any, **named: Any) -> None:
        if when == "after":
            append_once(*args, **named)
        raise Died

    with monkeypatch.context() as killed:
        killed.setattr(EventLog, "append_once", append_and_die)
        with pytest.raises(Died):
            override(SPEC, 2, decision(), paths)
    assert gates.certified(TABLE) == certified
    assert override(SPEC, 2, decision(), paths).override == decision()
    assert gates.certified(TABLE) == 2
    assert sum(1 for recorded in gates.results(TABLE) if recorded.result.override) == 1

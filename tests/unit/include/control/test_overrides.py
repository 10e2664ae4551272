"""A person lets one refused version pass: which one, once, and what later gates make of it."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from include.contracts.job_report import CheckResult
from include.contracts.table_spec import AnySpec, parse_spec
from include.control.gates import GateResult, Gates, Override
from include.control.overrides import override, override_note
from include.errors import ExitCode, OverrideError
from include.paths import LakehousePaths
from include.settings import PROJECT
from tests.support.delta_tables import append, create_table, optimize
from tests.support.specs import silver_document

TABLE = "silver.orders"
RULE = {"expect_table_row_count_to_be_between": {"max_value": 3}, "action": "fail", "reason": "three at most"}
RULE_NAME = "expect_table_row_count_to_be_between()"
SPEC = parse_spec(silver_document(expectations=[RULE]))
AT = datetime(2013, 1, 5, 10, tzinfo=UTC)


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    """A lakehouse whose table has two versions after the empty one."""
    paths = LakehousePaths(tmp_path)
    create_table(paths.table(TABLE))
    append(paths.table(TABLE))
    append(paths.table(TABLE))
    return paths


@pytest.fixture
def gates(paths: LakehousePaths) -> Gates:
    """Version 1 passed, version 2 was refused."""
    gates = Gates(paths)
    judge(paths, 1, passed=True)
    judge(paths, 2)
    return gates


def judge(paths: LakehousePaths, version: int, *, passed: bool = False, spec: AnySpec = SPEC) -> GateResult:
    table_id = str(DeltaTable(str(paths.table(TABLE))).metadata().id)
    rule = spec.table_rules[0]
    check = CheckResult(rule=rule.rule, action="fail", passed=passed, reason=rule.reason, observed=4)
    result = GateResult(
        table=TABLE,
        table_id=table_id,
        version=version,
        suite_hash=spec.suite_hash,
        passed=passed,
        checks=(check,),
        batches=(f"main/{version}",),
        refused="" if passed else f"{TABLE} version {version} refused",
    )
    Gates(paths).record(result)
    return result


def said(by: str = "ann", reason: str = "a holiday", run_id: str = "manual__1") -> Override:
    return Override(by=by, reason=reason, run_id=run_id, at=AT)


def test_the_refused_version_is_certified_and_who_let_it_is_kept(paths: LakehousePaths, gates: Gates) -> None:
    assert gates.certified(TABLE) == 1
    override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == 2
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert (kept.passed, kept.override, kept.suite_hash, kept.batches) == (True, said(), SPEC.suite_hash, ("main/2",))
    [check] = kept.checks
    assert (check.rule, check.passed, check.overridden, check.refuses) == (RULE_NAME, False, True, False)


@pytest.mark.usefixtures("gates")
def test_who_and_why_are_columns_of_the_ledger(paths: LakehousePaths) -> None:
    override(SPEC, 2, said(), paths)
    rows = DeltaTable(str(paths.ops("gates"))).to_pyarrow_table().sort_by("recorded_at").to_pylist()
    assert [(row["version"], row["passed"], row["overridden_by"], row["override_reason"]) for row in rows] == [
        (1, True, None, None),
        (2, False, None, None),
        (2, True, "ann", "a holiday"),
    ]


def test_a_ledger_of_before_takes_on_overrides(paths: LakehousePaths, gates: Gates) -> None:
    ledger = str(paths.ops("gates"))
    old = DeltaTable(ledger).to_pyarrow_table().drop(["overridden_by", "override_reason"])
    write_deltalake(ledger, old, mode="overwrite", schema_mode="overwrite", partition_by=["table"])
    assert Gates(paths).certified(TABLE) == 1
    override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == 2


def test_a_later_refusal_stands_and_the_certified_version_stays(paths: LakehousePaths, gates: Gates) -> None:
    override(SPEC, 2, said(), paths)
    append(paths.table(TABLE))
    judge(paths, 3)
    assert gates.certified(TABLE) == 2
    first = gates.first_refused(TABLE, above=2)
    assert first is not None
    assert first.version == 3, "the overridden version does not stand refused any more"
    override(SPEC, 3, said(reason="another one"), paths)
    assert gates.certified(TABLE) == 3


def test_a_gate_that_comes_late_with_its_refusal_does_not_undo_the_override(
    paths: LakehousePaths, gates: Gates
) -> None:
    override(SPEC, 2, said(), paths)
    judge(paths, 2)
    kept = gates.result(TABLE, 2, SPEC.suite_hash)
    assert kept is not None
    assert kept.override == said()
    assert gates.certified(TABLE) == 2


def test_files_put_together_since_change_nothing(paths: LakehousePaths, gates: Gates) -> None:
    optimized = optimize(paths.table(TABLE))
    override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == optimized


@pytest.mark.usefixtures("gates")
def test_a_version_that_passed_has_nothing_to_override(paths: LakehousePaths) -> None:
    with pytest.raises(OverrideError, match="version 1 passed its gate: there is nothing to override") as refused:
        override(SPEC, 1, said(), paths)
    assert refused.value.exit_code == ExitCode.BAD_INPUT


@pytest.mark.usefixtures("gates")
def test_an_override_is_for_once(paths: LakehousePaths) -> None:
    override(SPEC, 2, said(), paths)
    with pytest.raises(OverrideError, match="version 2 was overridden by ann at 2013-01-05 10:00 UTC: a holiday"):
        override(SPEC, 2, said("bob", run_id="manual__2"), paths)


@pytest.mark.parametrize("version", [-1, 3])
@pytest.mark.usefixtures("gates")
def test_a_version_that_does_not_exist_is_an_error(paths: LakehousePaths, version: int) -> None:
    with pytest.raises(OverrideError, match=rf"has no version {version}: its newest is 2\. .*gate show silver\.orders"):
        override(SPEC, version, said(), paths)


@pytest.mark.usefixtures("gates")
def test_a_version_that_nobody_judged_is_an_error(paths: LakehousePaths) -> None:
    append(paths.table(TABLE))
    with pytest.raises(OverrideError, match="no gate has refused version 3; refused are 2"):
        override(SPEC, 3, said(), paths)


def test_a_table_that_was_never_built_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OverrideError, match=r"silver\.orders was never built"):
        override(SPEC, 0, said(), LakehousePaths(tmp_path))


def test_readers_are_never_led_back(paths: LakehousePaths, gates: Gates) -> None:
    judge(paths, append(paths.table(TABLE)), passed=True)
    with pytest.raises(OverrideError, match="readers use version 3, a later one than 2: they are never led back"):
        override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == 3


def test_of_several_refused_versions_the_newest_is_meant(paths: LakehousePaths, gates: Gates) -> None:
    judge(paths, append(paths.table(TABLE)))
    with pytest.raises(OverrideError, match=r"version 3 came after 2, and was refused too.*override version 3 if both"):
        override(SPEC, 2, said(), paths)
    override(SPEC, 3, said(), paths)
    assert gates.certified(TABLE) == 3


def test_a_newer_version_that_is_not_judged_yet_is_no_obstacle(paths: LakehousePaths, gates: Gates) -> None:
    append(paths.table(TABLE))
    override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == 2


@pytest.mark.usefixtures("gates")
def test_rules_that_changed_since_judge_first(paths: LakehousePaths) -> None:
    changed = parse_spec(silver_document(expectations=[{**RULE, "reason": "four at most"}]))
    with pytest.raises(OverrideError, match="the rules have changed since version 2 was refused"):
        override(changed, 2, said(), paths)


@pytest.mark.usefixtures("gates")
def test_an_override_needs_a_reason(paths: LakehousePaths) -> None:
    with pytest.raises(OverrideError, match="needs a reason"):
        override(SPEC, 2, said(reason=" "), paths)


def test_a_version_whose_files_are_gone_is_an_error(paths: LakehousePaths, gates: Gates) -> None:
    Path(DeltaTable(str(paths.table(TABLE)), version=2).file_uris()[0]).unlink()
    with pytest.raises(OverrideError, match="1 files of version 2 were removed by VACUUM"):
        override(SPEC, 2, said(), paths)
    assert gates.certified(TABLE) == 1


def test_the_note_lasts_as_long_as_readers_use_the_version(paths: LakehousePaths, gates: Gates) -> None:
    assert override_note(TABLE, gates) == ()
    override(SPEC, 2, said(), paths)
    [note] = override_note(TABLE, gates)
    assert note == (
        "readers use version 2 of silver.orders, overridden by ann at 2013-01-05 10:00 UTC: a holiday; "
        f"it had failed {RULE_NAME}"
    )
    judge(paths, append(paths.table(TABLE)), passed=True)
    assert override_note(TABLE, gates) == ()


@pytest.mark.usefixtures("gates")
def test_of_many_at_once_one_lets_it_pass(paths: LakehousePaths) -> None:
    def attempt(number: int) -> str:
        try:
            made = override(SPEC, 2, said(f"person {number}", run_id=f"manual__{number}"), paths)
        except OverrideError as refused:
            return str(refused)
        assert made.override is not None
        return made.override.by

    with ThreadPoolExecutor(8) as people:
        answers = list(people.map(attempt, range(8)))
    winners = [answer for answer in answers if answer.startswith("person")]
    recorded = [one.result.override for one in Gates(paths).results(TABLE) if one.result.override]
    assert [one.by for one in recorded] == winners
    assert len(winners) == 1
    others = [answer for answer in answers if answer not in winners]
    assert all("overridden by" in answer or "somebody else" in answer for answer in others)


EVENTS = st.lists(
    st.one_of(
        st.just("append"),
        st.tuples(st.just("judge"), st.integers(0, 5), st.booleans()),
        st.tuples(st.just("override"), st.integers(-1, 6)),
    ),
    max_size=10,
)


@settings(max_examples=25, deadline=None)
@given(events=EVENTS)
def test_whatever_happened_before_an_override_certifies_just_the_newest_refused_version(
    events: list[str | tuple[str, int, bool] | tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    paths = LakehousePaths(tmp_path_factory.mktemp("lake"))
    create_table(paths.table(TABLE))
    newest, passed, refused = 0, set[int](), set[int]()
    for number, event in enumerate(events):
        certified = max(passed, default=-1)
        if event == "append":
            newest = append(paths.table(TABLE))
        elif event[0] == "judge" and event[1] <= newest:
            judge(paths, event[1], passed=bool(event[2]))
            (passed if event[2] else refused).add(event[1])
        elif event[0] == "override":
            standing = [version for version in refused if version > certified]
            if standing and event[1] == max(standing):
                assert override(SPEC, event[1], said(run_id=str(number)), paths).version == event[1]
                passed.add(event[1])
            else:
                with pytest.raises(OverrideError):
                    override(SPEC, event[1], said(run_id=str(number)), paths)
        now = Gates(paths).last_passed(TABLE)
        assert (-1 if now is None else now) == max(passed, default=-1) >= certified


KILLED = """
import os, sys
from pathlib import Path
from deltalake import write_deltalake
from include.control import ops_table
from tests.unit.include.control.test_overrides import SPEC, LakehousePaths, override, said
when, root = sys.argv[1], Path(sys.argv[2])
def dies(*args, **named):
    if when == "before": os._exit(9)
    write_deltalake(*args, **named)
    os._exit(9)
ops_table.write_deltalake = dies
override(SPEC, 2, said(), LakehousePaths(root))
"""


@pytest.mark.parametrize(("when", "certified"), [("before", 1), ("after", 2)])
def test_one_who_is_killed_has_let_it_pass_or_not_and_may_ask_again(
    paths: LakehousePaths, gates: Gates, when: str, certified: int
) -> None:
    environment = {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'plugins'}", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", KILLED, when, str(paths.root)]
    killed = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert killed.returncode == 9, killed.stderr
    assert gates.certified(TABLE) == certified
    assert override(SPEC, 2, said(), paths).override == said()
    assert gates.certified(TABLE) == 2
    assert sum(1 for one in gates.results(TABLE) if one.result.override) == 1

"""Overrides by several people at once and by killed processes: a version is overridden once or never."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from include.control.gates.gates import Gates
from include.control.gates.overrides import override
from include.errors import OverrideError
from include.paths import LakehousePaths
from include.settings import PROJECT
from tests.support.ledger.delta_tables import append, create_table
from tests.support.ledger.gate_results import last_passed
from tests.support.ledger.refused_table import SPEC, TABLE, decision, judge, refused_table


def test_one_of_many_concurrent_overrides_wins(paths: LakehousePaths) -> None:
    gates = refused_table(paths)

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
    assert all("overridden by" in answer or "somebody else" in answer for answer in others)


EVENTS = st.lists(
    st.one_of(
        st.just("append"),
        st.tuples(st.just("judge"), st.integers(0, 5), st.booleans()),
        st.tuples(st.just("override"), st.integers(-1, 6)),
    ),
    min_size=5,
    max_size=10,
)


@settings(max_examples=6)
@given(events=EVENTS)
def test_an_override_certifies_only_the_newest_refused_version_after_any_history(
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
            open_refusals = [version for version in refused if version > certified]
            if open_refusals and event[1] == max(open_refusals):
                assert override(SPEC, event[1], decision(run_id=str(number)), paths).version == event[1]
                passed.add(event[1])
            else:
                with pytest.raises(OverrideError):
                    override(SPEC, event[1], decision(run_id=str(number)), paths)
        now = last_passed(Gates(paths), TABLE)
        assert (-1 if now is None else now) == max(passed, default=-1) >= certified


KILLED = """
import os, sys
from pathlib import Path
from include.control.events.event_log import EventLog
from include.control.gates.overrides import override
from include.paths import LakehousePaths
from tests.support.ledger.refused_table import SPEC, decision
when, root = sys.argv[1], Path(sys.argv[2])
def append_and_die(*args, **named):
    if when == "before": os._exit(9)
    append_once(*args, **named)
    os._exit(9)
append_once, EventLog.append_once = EventLog.append_once, append_and_die
override(SPEC, 2, decision(), LakehousePaths(root))
"""


@pytest.mark.parametrize(("when", "certified"), [("before", 1), ("after", 2)])
def test_a_killed_override_is_recorded_or_not_and_can_be_repeated(
    paths: LakehousePaths, when: str, certified: int
) -> None:
    gates = refused_table(paths)
    environment = {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'plugins'}", "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", KILLED, when, str(paths.root)]
    killed = subprocess.run(command, env=environment, cwd=PROJECT, capture_output=True, text=True, check=False)
    assert killed.returncode == 9, killed.stderr
    assert gates.certified(TABLE) == certified
    assert override(SPEC, 2, decision(), paths).override == decision()
    assert gates.certified(TABLE) == 2
    assert sum(1 for recorded in gates.results(TABLE) if recorded.result.override) == 1

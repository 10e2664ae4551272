"""A version that was found wrong stays certified, and is remembered until a later version passes by the rules."""

from __future__ import annotations

from pathlib import Path

import pytest

from include.control.gates.gates import Gates
from include.control.gates.verdicts import Verdicts
from include.control.gates.verification import verification_note
from include.control.ledger.states.table_state import TableStates
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, optimize
from tests.support.ledger.gate_results import TABLE, verdict


@pytest.fixture
def paths(tmp_path: Path) -> LakehousePaths:
    return LakehousePaths(tmp_path)


def wrong_version(gates: Gates) -> int | None:
    verdicts = gates.verdicts(TABLE)
    return verdicts.found_wrong.version if verdicts and verdicts.found_wrong else None


def test_a_wrong_version_stays_certified_and_is_forgotten_with_the_next_that_passes(
    table: Path, paths: LakehousePaths
) -> None:
    gates, table_id = Gates(paths), str(open_table(table).metadata().id)
    append(table)
    first = append(table)
    passed = verdict(table_id, first)
    gates.record(passed)
    wrong = verdict(table_id, first, passed=False).model_copy(update={"is_verification": True})
    gates.record(wrong)
    optimized = optimize(table)
    assert (gates.certified(TABLE), wrong_version(gates)) == (optimized, first)
    assert gates.result(TABLE, first, "suite") == wrong, "the gate of the version says so"
    (note,) = verification_note(TABLE, gates.verdicts(TABLE))
    assert note.startswith(f"readers use version {optimized} of {TABLE}, which `lakehouse verify` found wrong")
    gates.record(verdict(table_id, second := append(table), passed=False))
    assert (gates.certified(TABLE), wrong_version(gates)) == (optimized, first)
    gates.record(verdict(table_id, second, suite_hash="looser"))
    assert (gates.certified(TABLE), wrong_version(gates)) == (second, None)


@pytest.mark.parametrize("has_state", [True, False])
def test_a_later_verification_without_a_difference_withdraws_it(
    table: Path, paths: LakehousePaths, has_state: bool
) -> None:
    gates, table_id = Gates(paths), str(open_table(table).metadata().id)
    result = verdict(table_id, append(table)).model_copy(update={"is_verification": True})
    for passed, expected in ((True, None), (False, result.version), (True, None)):
        gates.record(result.model_copy(update={"passed": passed}))
        if not has_state:
            TableStates(paths).change(TABLE, (Verdicts, lambda _: None))
        assert wrong_version(gates) == expected

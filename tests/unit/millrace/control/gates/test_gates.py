"""Gate results, and the version that readers may use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from millrace.control.gates.gates import Gates
from millrace.control.gates.result import GateResult
from millrace.control.ledger.ops_table import OpsTable
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, create_table, file_contents
from tests.support.ledger.gate_results import TABLE, last_passed, verdict

OTHER = "silver.planes"


def test_nothing_is_certified_before_the_first_gate(table: Path, gates: Gates, tmp_path: Path) -> None:
    append(table)
    before = file_contents(tmp_path)
    assert gates.certified(TABLE) is None
    assert last_passed(gates) is None
    assert gates.first_refusal(TABLE, above=-1) is None
    assert gates.result(TABLE, 1, "suite") is None
    assert file_contents(tmp_path) == before


def test_two_results_recorded_at_once_both_count(
    table: Path, table_id: str, gates: Gates, paths: LakehousePaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    gates.record(verdict(table_id, 0))
    passed, refused = verdict(table_id, append(table)), verdict(table_id, append(table), passed=False)
    write = OpsTable.append

    def write_second(self: OpsTable, events: Sequence[dict[str, Any]]) -> None:
        monkeypatch.setattr(OpsTable, "append", write)
        Gates(paths).record(refused)
        self.append(events)

    monkeypatch.setattr(OpsTable, "append", write_second)
    gates.record(passed)
    assert gates.certified(TABLE) == passed.version == 1
    assert gates.first_refusal(TABLE, above=1) == refused


def test_the_certified_version_is_the_last_that_passed_and_never_moves_back(
    table: Path, table_id: str, gates: Gates
) -> None:
    first, second, third = (append(table) for _ in range(3))
    gates.record(verdict(table_id, second))
    refused = verdict(table_id, third, passed=False)
    gates.record(refused)
    assert gates.certified(TABLE) == second == last_passed(gates)
    assert gates.result(TABLE, third, "suite") == refused, "it is read back unchanged"
    for later in (
        verdict(table_id, first),
        verdict(table_id, first, suite_hash="newer rules"),
        verdict(table_id, second, passed=False, suite_hash="newer rules"),
    ):
        gates.record(later)
        assert gates.certified(TABLE) == second


def test_the_newest_result_of_a_version_counts_for_the_rules_it_was_made_by(
    table: Path, table_id: str, gates: Gates
) -> None:
    version = append(table)
    gates.record(verdict(table_id, version, passed=False))
    assert gates.result(TABLE, version, "corrected rules") is None
    assert gates.result(TABLE, version + 1, "suite") is None
    for passed in (False, True):
        gates.record(verdict(table_id, version, passed=passed, suite_hash="corrected rules"))
    results = [gates.result(TABLE, version, suite) for suite in ("corrected rules", "suite")]
    assert [result and result.passed for result in results] == [True, False]
    assert gates.certified(TABLE) == version


def test_results_of_another_table_or_of_an_earlier_one_at_the_same_path_do_not_count(
    table: Path, table_id: str, gates: Gates, tmp_path: Path
) -> None:
    version = append(table)
    gates.record(verdict(table_id, version).model_copy(update={"table": OTHER}))
    assert (gates.certified(TABLE), gates.certified(OTHER)) == (None, None), "the other one does not exist"
    gates.record(verdict(table_id, version))
    table.rename(tmp_path / "gone")
    create_table(table)
    append(table)
    assert gates.certified(TABLE) is None
    assert gates.result(TABLE, version, "suite") is None


def test_the_first_refusal_is_that_of_the_lowest_version(table: Path, table_id: str, gates: Gates) -> None:
    versions = [append(table) for _ in range(4)]
    lowest, second, third = (verdict(table_id, version, passed=False) for version in (*versions[:1], *versions[2:]))
    gates.record(lowest)
    assert gates.first_refusal(TABLE, above=-1) == lowest
    for later in (verdict(table_id, versions[1]), third, second):
        gates.record(later)
    assert gates.first_refusal(TABLE, above=versions[1]) == second
    assert gates.first_refusal(TABLE, above=-1) == lowest
    assert gates.first_refusal(TABLE, above=versions[3]) is None


def test_only_a_refusal_is_out_of_date_after_the_compared_table_has_a_new_certified_version(
    table: Path, table_id: str, gates: Gates, paths: LakehousePaths
) -> None:
    def compared(seen: int | None, *, passed: bool) -> GateResult:
        suite = "passes" if passed else "refuses"
        return verdict(table_id, 1, passed=passed, suite_hash=suite).model_copy(update={"compared": {OTHER: seen}})

    append(table)
    gates.record(compared(None, passed=False))
    gates.record(compared(None, passed=True))
    assert gates.result(TABLE, 1, "refuses") is not None, "the other table still has no certified version"
    gates.record(verdict(create_table(paths.table(OTHER)), 0).model_copy(update={"table": OTHER}))
    assert gates.result(TABLE, 1, "refuses") is None
    assert gates.result(TABLE, 1, "passes") is not None
    assert last_passed(gates) == 1
    gates.record(compared(0, passed=False))
    assert gates.result(TABLE, 1, "refuses") is not None


def test_a_version_without_a_result_has_the_certificate_above_it_and_certificates_are_found_downward(
    table: Path, table_id: str, gates: Gates
) -> None:
    for _ in range(5):
        append(table)
    refused, certificate = verdict(table_id, 1, passed=False), verdict(table_id, 3)
    gates.record(refused)
    gates.record(certificate)
    assert gates.result(TABLE, 1, "suite") == refused
    assert gates.result(TABLE, 2, "suite") == certificate
    assert gates.result(TABLE, 2, "other rules") is None
    assert gates.result(TABLE, 4, "suite") is None
    gates.record(verdict(table_id, 1))
    gates.record(verdict(table_id, 2, passed=False))
    gates.record(verdict(table_id, 1, suite_hash="corrected").model_copy(update={"facts": {"in_table": 7}}))
    gates.record(verdict(table_id, 5))
    below = list(gates.certificates_below(TABLE, 5))
    assert [result.version for result in below] == [3, 1], "newest first, and one per version"
    assert below[1].facts == {"in_table": 7}, "the newest result of a version"
    assert list(gates.certificates_below(TABLE, 1)) == []

"""The versions that a certificate covers: later ones with the same rows, even after one was found wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from millrace.control.gates.gates import Gates
from millrace.control.gates.verdicts import Verdicts
from millrace.control.gates.verification import verification_note
from millrace.control.ledger.states.table_state import TableStates
from millrace.control.log.delta_log import USER_METADATA_KEY
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, clean_log, commit_file, delete_all, optimize, set_property
from tests.support.ledger.gate_results import TABLE, last_passed, verdict


def test_a_certificate_is_inherited_until_a_commit_changes_data(table: Path, table_id: str, gates: Gates) -> None:
    append(table)
    gates.record(verdict(table_id, append(table)))
    optimized = optimize(table)
    assert gates.certified(TABLE) == optimized
    altered = set_property(table)
    assert gates.certified(TABLE) == altered
    assert last_passed(gates) == optimized - 1
    appended = append(table)
    optimize(table)
    assert gates.certified(TABLE) == altered
    gates.record(verdict(table_id, appended))
    delete_all(table)
    assert gates.certified(TABLE) == appended + 1


def test_a_certificate_stays_valid_after_log_cleanup_but_is_not_inherited_over_missing_commits(
    table: Path, table_id: str, gates: Gates
) -> None:
    append(table)
    passed = append(table)
    gates.record(verdict(table_id, passed))
    optimize(table)
    append(table)
    optimize(table)
    clean_log(table, below=4)
    assert not commit_file(table, 3).exists()
    assert gates.certified(TABLE) == passed
    metadata = json.dumps({USER_METADATA_KEY: {"sources": {"restores": passed}}})
    restored = append(table, user_metadata=metadata)
    assert gates.certified(TABLE) == restored, "its rows are those of the certified version again"
    newest = append(table)
    gates.record(verdict(table_id, newest))
    assert gates.certified(TABLE) == newest
    assert optimize(table) == gates.certified(TABLE)


def wrong_version(gates: Gates) -> int | None:
    verdicts = gates.verdicts(TABLE)
    return verdicts.found_wrong.version if verdicts and verdicts.found_wrong else None


def test_a_wrong_version_stays_certified_and_is_forgotten_with_the_next_that_passes(
    table: Path, table_id: str, gates: Gates
) -> None:
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
    table: Path, table_id: str, gates: Gates, paths: LakehousePaths, has_state: bool
) -> None:
    result = verdict(table_id, append(table)).model_copy(update={"is_verification": True})
    for passed, expected in ((True, None), (False, result.version), (True, None)):
        gates.record(result.model_copy(update={"passed": passed}))
        if not has_state:
            TableStates(paths).change(TABLE, (Verdicts, lambda _: None))
        assert wrong_version(gates) == expected


def test_an_undone_rebuild_brings_back_a_certificate_or_the_refusal_of_rows_that_were_found_wrong(
    table: Path, table_id: str, gates: Gates
) -> None:
    certificate = verdict(table_id, passed := append(table))
    gates.record(certificate)
    assert gates.last_word_on(TABLE, table_id, passed) == certificate
    assert gates.last_word_on(TABLE, table_id, append(table)) is None, "another version, which nobody has judged"
    wrong = certificate.model_copy(update={"passed": False, "is_verification": True})
    gates.record(wrong)
    assert gates.last_word_on(TABLE, table_id, passed) == wrong
    for rebuild in ("r1", "undo of r1"):
        metadata = json.dumps({USER_METADATA_KEY: {"sources": {"rebuild": rebuild}}})
        undone = append(table, user_metadata=metadata)
    gates.record(wrong.model_copy(update={"version": undone}))
    assert (gates.certified(TABLE), wrong_version(gates)) == (None, undone)
    gates.record(verdict(table_id, later := append(table)))
    assert (gates.certified(TABLE), wrong_version(gates)) == (later, None)

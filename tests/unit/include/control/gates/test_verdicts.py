"""The later versions that have the rows of a certified version, and so keep its certificate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from include.control.gates.gates import Gates
from include.control.log.delta_log import USER_METADATA_KEY
from include.control.log.stored_tables import open_table
from include.paths import LakehousePaths
from tests.support.ledger.delta_tables import append, clean_log, commit_file, delete_all, optimize, set_property
from tests.support.ledger.gate_results import TABLE, last_passed, verdict


@pytest.fixture
def table_id(table: Path) -> str:
    return str(open_table(table).metadata().id)


@pytest.fixture
def gates(tmp_path: Path) -> Gates:
    return Gates(LakehousePaths(tmp_path))


def test_commits_without_a_change_of_data_inherit_the_certificate(table: Path, table_id: str, gates: Gates) -> None:
    append(table)
    gates.record(verdict(table_id, append(table)))
    optimized = optimize(table)
    assert gates.certified(TABLE) == optimized
    altered = set_property(table)
    assert gates.certified(TABLE) == altered
    assert last_passed(gates) == optimized - 1


def test_a_commit_that_changes_data_ends_the_inheritance(table: Path, table_id: str, gates: Gates) -> None:
    append(table)
    gates.record(verdict(table_id, append(table)))
    optimized = optimize(table)
    append(table)
    optimize(table)
    assert gates.certified(TABLE) == optimized


def test_a_delete_changes_data_too(table: Path, table_id: str, gates: Gates) -> None:
    version = append(table)
    gates.record(verdict(table_id, version))
    delete_all(table)
    assert gates.certified(TABLE) == version


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
    newest = append(table)
    gates.record(verdict(table_id, newest))
    assert gates.certified(TABLE) == newest
    assert optimize(table) == gates.certified(TABLE)


def test_rows_restored_after_log_cleanup_are_certified_again(table: Path, table_id: str, gates: Gates) -> None:
    passed = append(table)
    gates.record(verdict(table_id, passed))
    for _ in range(3):
        append(table)
    clean_log(table, below=4)
    metadata = json.dumps({USER_METADATA_KEY: {"sources": {"restores": passed}}})
    restored = append(table, user_metadata=metadata)
    assert gates.certified(TABLE) == restored

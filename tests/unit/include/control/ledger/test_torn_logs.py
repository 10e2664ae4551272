"""Resolving stops at a log that has lost, doubled or changed something; it never guesses."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from include.control.ledger.ledger import Ledger
from include.control.ledger.resolution import read_position, resolve
from include.errors import TornLogError
from tests.support.ledger.delta_tables import (
    FLIGHTS,
    append,
    clean_log,
    commit_file,
    optimize,
)
from tests.support.ledger.resolving import commit_next, lose_ledger


@pytest.mark.parametrize("checkpoint_at", [None, 2, 3, 4])
def test_a_gap_in_the_log_stops_the_run_with_or_without_a_later_checkpoint(
    table: Path, ledger: Ledger, checkpoint_at: int | None
) -> None:
    for batch_seq in (1, 2, 3, 4):
        commit_next(table, batch_seq)
        if batch_seq == checkpoint_at:
            DeltaTable(str(table)).create_checkpoint()
    assert read_position(table, FLIGHTS, ledger)[0].next_seq == 5
    commit_file(table, 3).unlink()
    with pytest.raises(TornLogError, match="Do not write; restore"):
        resolve(table, FLIGHTS, ledger)


def test_a_damaged_commit_file_stops_the_run(table: Path, ledger: Ledger) -> None:
    version = commit_next(table, 1).version
    whole = commit_file(table, version).read_text()
    commit_file(table, version).write_text(whole[: len(whole) // 2])
    with pytest.raises(TornLogError, match="cannot be read"):
        resolve(table, FLIGHTS, ledger)


def test_a_missing_number_in_a_complete_log_stops_the_run(table: Path, ledger: Ledger) -> None:
    commit_next(table, 1)
    commit_next(table, 3)
    with pytest.raises(TornLogError, match=r"silver\.flights: batch 3 follows batch 1 in the log of stream main"):
        resolve(table, FLIGHTS, ledger)


def test_a_repeated_number_stops_the_run(table: Path, ledger: Ledger) -> None:
    commit_next(table, 1)
    resolve(table, FLIGHTS, ledger)
    commit_next(table, 1)
    with pytest.raises(TornLogError, match="batch 1 follows batch 1"):
        resolve(table, FLIGHTS, ledger)


def test_a_log_that_was_cleaned_up_to_the_last_resolved_version_is_accepted(table: Path, ledger: Ledger) -> None:
    for batch_seq in (1, 2, 3):
        commit_next(table, batch_seq)
    resolve(table, FLIGHTS, ledger)
    fourth = commit_next(table, 4)
    clean_log(table, below=fourth.version)
    assert not commit_file(table, 3).exists()
    position, new = read_position(table, FLIGHTS, ledger)
    assert (new, position.next_seq) == ((fourth,), 5)


def test_a_log_that_was_cleaned_up_above_the_last_resolved_version_stops_the_run(table: Path, ledger: Ledger) -> None:
    commit_next(table, 1)
    resolve(table, FLIGHTS, ledger)
    for batch_seq in (2, 3):
        commit_next(table, batch_seq)
    clean_log(table, below=3)
    with pytest.raises(TornLogError, match="has no commit 2, but has 3"):
        resolve(table, FLIGHTS, ledger)


def test_a_table_that_was_only_optimized_for_longer_than_its_log_retention_is_accepted(
    table: Path, ledger: Ledger
) -> None:
    last = [commit_next(table, batch_seq) for batch_seq in (1, 2)][-1]
    resolve(table, FLIGHTS, ledger)
    optimize(table)
    append(table)
    newest = optimize(table)
    clean_log(table, below=newest)
    position, new = read_position(table, FLIGHTS, ledger)
    assert (position.last, position.version, new) == (last, newest, ())
    assert commit_next(table, 3) == read_position(table, FLIGHTS, ledger)[0].last


def test_a_lost_ledger_over_a_cleaned_log_stops_the_run(table: Path, ledger: Ledger, tmp_path: Path) -> None:
    for batch_seq in (1, 2, 3):
        commit_next(table, batch_seq)
    resolve(table, FLIGHTS, ledger)
    clean_log(table, below=2)
    with pytest.raises(TornLogError, match="has no commit 0, but has 3"):
        resolve(table, FLIGHTS, lose_ledger(tmp_path))


def test_a_number_that_is_only_in_a_checkpoint_stops_the_run(table: Path, ledger: Ledger) -> None:
    commit_next(table, 1)
    clean_log(table, below=2)
    assert DeltaTable(str(table)).transaction_version(FLIGHTS.app_id) == 1
    with pytest.raises(TornLogError, match="has recorded batch 1 of stream main"):
        resolve(table, FLIGHTS, ledger)


def test_a_table_put_back_to_an_older_state_stops_the_run(table: Path, ledger: Ledger) -> None:
    for batch_seq in (1, 2, 3):
        commit_next(table, batch_seq)
    resolve(table, FLIGHTS, ledger)
    for version in (2, 3):
        commit_file(table, version).unlink()
    assert DeltaTable(str(table)).version() == 1
    with pytest.raises(TornLogError, match="batch 3 was version 3, but the log no longer has it there"):
        resolve(table, FLIGHTS, ledger)


def test_a_table_put_back_and_then_written_by_others_stops_the_run(table: Path, ledger: Ledger) -> None:
    for batch_seq in (1, 2):
        commit_next(table, batch_seq)
    resolve(table, FLIGHTS, ledger)
    commit_file(table, 2).unlink()
    for _ in range(3):
        append(table)
    with pytest.raises(TornLogError, match="put back to an older state, or replaced"):
        resolve(table, FLIGHTS, ledger)


def test_another_token_where_the_ledgers_last_batch_was_stops_the_run(table: Path, ledger: Ledger) -> None:
    for batch_seq in (1, 2):
        commit_next(table, batch_seq)
    resolve(table, FLIGHTS, ledger)
    commit_file(table, 2).unlink()
    assert commit_next(table, 2).version == 2
    with pytest.raises(TornLogError, match="batch 2 was version 2, but the log no longer has it there"):
        resolve(table, FLIGHTS, ledger)

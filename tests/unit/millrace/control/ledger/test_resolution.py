"""Resolving a stream finds the attempts that won in the table's own log; of a torn log it guesses nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from millrace.control.ledger import resolution
from millrace.control.ledger.ledger import Ledger
from millrace.control.ledger.resolution import read_position, resolve, table_id, winner_at
from millrace.control.log.batch import BatchSources, Stream, Winner, new_token
from millrace.errors import TornLogError
from millrace.paths import LakehousePaths
from tests.support.ledger.delta_tables import (
    FLIGHTS,
    append,
    clean_log,
    commit,
    commit_file,
    create_table,
    file_contents,
    intent_of,
    optimize,
    set_property,
)

OTHER = Stream("silver.flights", "other")


def commit_batches(table: Path, *numbers: int, stream: Stream = FLIGHTS) -> list[Winner]:
    """Commit batches with these numbers."""
    return [commit(table, intent_of(table_id(table), number, stream=stream)) for number in numbers]


def lose_ledger(root: Path) -> Ledger:
    """Return an empty ledger, as after the loss of its folders of history and state."""
    for folder in (root / "ops", LakehousePaths(root).state):
        if folder.exists():
            folder.rename(root / f"lost-{new_token()}")
    return Ledger(LakehousePaths(root))


def test_the_token_in_the_commit_decides_and_not_the_last_intent(table: Path, ledger: Ledger) -> None:
    won, lost = (intent_of(table_id(table), 1, sources=BatchSources(files=files)) for files in (1, 2))
    for intent in (won, lost):
        ledger.record_intent(intent)
    winner = commit(table, won)
    position = resolve(table, FLIGHTS, ledger)
    assert position.last == winner
    assert (position.next_seq, position.last_sources.files) == (2, 1)
    assert ledger.last_committed("silver.flights", position.table_id, "main") == winner


def test_a_reader_finds_the_commits_of_dead_writers_and_only_the_next_writer_records_them(
    table: Path, ledger: Ledger, tmp_path: Path
) -> None:
    [first] = commit_batches(table, 1)
    resolve(table, FLIGHTS, ledger)
    later = tuple(commit_batches(table, 2, 3))
    before = file_contents(tmp_path)
    position, new = read_position(table, FLIGHTS, ledger)
    assert (position.last, position.next_seq, position.version, new) == (later[-1], 4, 3, later)
    assert file_contents(tmp_path) == before
    assert resolve(table, FLIGHTS, ledger) == position
    assert read_position(table, FLIGHTS, ledger) == (position, ())
    restored = read_position(table, FLIGHTS, lose_ledger(tmp_path))
    assert restored == (position, (first, *later)), "the log restores a lost ledger"


def test_a_stream_without_a_batch_in_the_log_starts_at_its_end(table: Path, ledger: Ledger) -> None:
    for _ in range(3):
        append(table)
    clean_log(table, below=3)
    position = resolve(table, FLIGHTS, ledger)
    assert (position.last, position.version, position.next_seq) == (None, 3, 1)


def test_a_new_table_at_the_same_path_starts_with_no_batch(table: Path, ledger: Ledger, tmp_path: Path) -> None:
    commit_batches(table, 1, 2)
    before = resolve(table, FLIGHTS, ledger)
    table.rename(tmp_path / "gone")
    create_table(table)
    position = resolve(table, FLIGHTS, ledger)
    assert position.table_id != before.table_id
    assert (position.last, position.version, position.next_seq) == (None, 0, 1)
    assert commit_batches(table, 1) == [resolve(table, FLIGHTS, ledger).last]


def test_a_rebuild_with_a_higher_version_than_recorded_is_found(table: Path, ledger: Ledger) -> None:
    [first] = commit_batches(table, 1)
    resolve(table, FLIGHTS, ledger)
    intent = intent_of(table_id(table), 2, sources=BatchSources(rebuild="r1"))
    ledger.record_committed([Winner(intent, first.version + 1)])
    altered = set_property(table)
    append(table, txn=(FLIGHTS.app_id, 2), user_metadata=intent.user_metadata())
    assert resolve(table, FLIGHTS, ledger).last == Winner(intent, altered + 1)
    assert commit_batches(table, 3) == [resolve(table, FLIGHTS, ledger).last]


def test_the_winner_of_a_number_is_searched_above_a_version(table: Path) -> None:
    first, second = commit_batches(table, 1, 2)
    assert winner_at(table, FLIGHTS.app_id, 1, after=0) == first
    assert winner_at(table, FLIGHTS.app_id, 2, after=1) == second
    assert winner_at(table, FLIGHTS.app_id, 1, after=1) is None
    assert winner_at(table, FLIGHTS.app_id, 3, after=0) is None
    assert winner_at(table, OTHER.app_id, 1, after=0) is None


STEPS = st.lists(st.sampled_from(["ours", "other stream", "someone", "optimize", "resolve", "forget"]), max_size=9)


@settings(max_examples=10, deadline=None)
@given(steps=STEPS)
def test_every_batch_is_found_once_in_any_order_of_commits_and_reads(
    steps: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("lake")
    table, ledger = LakehousePaths(root).table("silver.flights"), Ledger(LakehousePaths(root))
    create_table(table)
    ours: list[Winner] = []
    others = 0
    for step in steps:
        if step == "ours":
            ours += commit_batches(table, len(ours) + 1)
        elif step == "other stream":
            others += 1
            commit_batches(table, others, stream=OTHER)
        elif step == "someone":
            append(table, txn=("someone else", 5), user_metadata='{"their": "words"}')
        elif step == "optimize" and len(DeltaTable(str(table)).file_uris()) > 1:
            optimize(table, ours[-1].intent.user_metadata() if ours else None)
        elif step == "resolve":
            assert resolve(table, FLIGHTS, ledger).next_seq == len(ours) + 1
        elif step == "forget" and (root / "ops").exists():
            ledger = lose_ledger(root)
    position = resolve(table, FLIGHTS, ledger)
    assert (position.last, position.next_seq) == (ours[-1] if ours else None, len(ours) + 1)
    assert resolve(table, OTHER, ledger).next_seq == others + 1


def test_a_stream_that_rests_costs_no_reading_of_the_other_streams_and_is_found_when_it_goes_on(
    table: Path, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    [resting] = commit_batches(table, 1, stream=OTHER)
    resolve(table, OTHER, ledger)
    commit_batches(table, 1, 2, 3)

    def refuse(*_: object) -> None:
        raise AssertionError("no commit is read")

    with monkeypatch.context() as patch:
        patch.setattr(resolution, "commits_after", refuse)
        position = resolve(table, OTHER, ledger)
    assert (position.last, position.version, position.next_seq) == (resting, resting.version + 3, 2)
    assert commit_batches(table, 2, stream=OTHER) == [resolve(table, OTHER, ledger).last]


@pytest.mark.parametrize("checkpoint_at", [None, 4])
def test_a_gap_in_the_log_stops_the_run_with_or_without_a_later_checkpoint(
    table: Path, ledger: Ledger, checkpoint_at: int | None
) -> None:
    commit_batches(table, 1, 2, 3, 4)
    if checkpoint_at:
        DeltaTable(str(table)).create_checkpoint()
    assert read_position(table, FLIGHTS, ledger)[0].next_seq == 5
    commit_file(table, 3).unlink()
    with pytest.raises(TornLogError, match="Do not write; restore"):
        resolve(table, FLIGHTS, ledger)


@pytest.mark.parametrize(("numbers", "resolved"), [((1, 3), 0), ((1, 1), 1)])
def test_a_missing_or_repeated_number_in_a_complete_log_stops_the_run(
    table: Path, ledger: Ledger, numbers: tuple[int, int], resolved: int
) -> None:
    for at, number in enumerate(numbers):
        commit_batches(table, number)
        if at < resolved:
            resolve(table, FLIGHTS, ledger)
    message = rf"silver\.flights: batch {numbers[1]} follows batch 1 in the log of stream main"
    with pytest.raises(TornLogError, match=message):
        resolve(table, FLIGHTS, ledger)


def test_a_log_that_was_cleaned_up_to_the_last_resolved_version_is_accepted(table: Path, ledger: Ledger) -> None:
    commit_batches(table, 1, 2, 3)
    resolve(table, FLIGHTS, ledger)
    [fourth] = commit_batches(table, 4)
    clean_log(table, below=fourth.version)
    assert not commit_file(table, 3).exists()
    position, new = read_position(table, FLIGHTS, ledger)
    assert (new, position.next_seq) == ((fourth,), 5)


@pytest.mark.parametrize(("is_ledger_lost", "missing"), [(False, 2), (True, 0)])
def test_a_log_that_was_cleaned_up_above_the_last_resolved_version_stops_the_run(
    table: Path, ledger: Ledger, tmp_path: Path, is_ledger_lost: bool, missing: int
) -> None:
    commit_batches(table, 1)
    resolve(table, FLIGHTS, ledger)
    commit_batches(table, 2, 3)
    clean_log(table, below=3)
    with pytest.raises(TornLogError, match=f"has no commit {missing}, but has 3"):
        resolve(table, FLIGHTS, lose_ledger(tmp_path) if is_ledger_lost else ledger)


def test_a_table_that_was_only_optimized_for_longer_than_its_log_retention_is_accepted(
    table: Path, ledger: Ledger
) -> None:
    last = commit_batches(table, 1, 2)[-1]
    resolve(table, FLIGHTS, ledger)
    optimize(table)
    append(table)
    newest = optimize(table)
    clean_log(table, below=newest)
    position, new = read_position(table, FLIGHTS, ledger)
    assert (position.last, position.version, new) == (last, newest, ())
    assert commit_batches(table, 3) == [read_position(table, FLIGHTS, ledger)[0].last]


def test_a_number_that_is_only_in_a_checkpoint_stops_the_run(table: Path, ledger: Ledger) -> None:
    commit_batches(table, 1)
    clean_log(table, below=2)
    assert DeltaTable(str(table)).transaction_version(FLIGHTS.app_id) == 1
    with pytest.raises(TornLogError, match="has recorded batch 1 of stream main"):
        resolve(table, FLIGHTS, ledger)


@pytest.mark.parametrize("later", ["nothing", "commits of others", "another batch 2"])
def test_a_table_put_back_to_an_older_state_stops_the_run_whatever_was_written_since(
    table: Path, ledger: Ledger, later: str
) -> None:
    commit_batches(table, 1, 2)
    resolve(table, FLIGHTS, ledger)
    commit_file(table, 2).unlink()
    assert DeltaTable(str(table)).version() == 1
    if later == "commits of others":
        for _ in range(3):
            append(table)
    elif later == "another batch 2":
        assert commit_batches(table, 2)[0].version == 2
    cause = "batch 2 was version 2, but the log no longer has it there: .* was put back to an older state, or replaced"
    with pytest.raises(TornLogError, match=cause):
        resolve(table, FLIGHTS, ledger)

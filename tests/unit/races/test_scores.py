"""The score of a race depends only on the answers to the writers and on the log."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from races.driver import Acknowledged, append_until, read_notes
from races.drivers import Crowd, Score, race, torn
from races.places import PlaceName, place, tokens_of
from races.versions import Answer, Answers
from tests.support.ledger.delta_tables import append, commit_file, create_table


def answers(**won: list[bool]) -> Answers:
    return Answers({name: {n: Answer(one, 1.0) for n, one in enumerate(wins)} for name, wins in won.items()})


def test_a_commit_that_two_were_told_of_is_lost_by_one() -> None:
    both = answers(ann=[True, False], bob=[True, True])
    assert both.winners == {0: ["ann", "bob"], 1: ["bob"]}
    assert both.lost({0: "ann", 1: "bob"}) == 1


def test_a_commit_that_is_nowhere_is_lost() -> None:
    assert answers(ann=[True, True], bob=[False, False]).lost({0: "ann"}) == 1


def test_only_wins_count_for_the_time_of_a_commit() -> None:
    told = {0: Answer(True, 3.0), 1: Answer(False, 90.0), 2: Answer(True, 5.0)}
    assert Answers({"ann": told}).median_ms == 4.0


def test_what_a_writer_was_told_is_kept_whatever_it_meets(tmp_path: Path) -> None:
    clock = iter([0.0, 1.0, 2.0, 3.0])
    file, met = Acknowledged(tmp_path / "notes.txt"), iter([None, OSError("no answer"), None])

    def commit(token: str) -> None:
        assert len(token) == 32
        if error := next(met):
            raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("races.driver.time", SimpleNamespace(monotonic=lambda: next(clock)))
        append_until(3.0, file, commit)
    tokens, errors = read_notes(tmp_path / "notes.txt")
    assert len(set(tokens)) == 2
    assert errors == Counter({"OSError": 1})


def test_tokens_are_counted_as_the_log_has_them(tmp_path: Path) -> None:
    create_table(tmp_path)
    for token in ("a", "b", "b"):
        append(tmp_path, user_metadata=token)
    log = {version: commit_file(tmp_path, version).read_text() for version in range(4)}
    assert tokens_of(log) == ["a", "b", "b"]


def test_writers_of_delta_rs_lose_nothing_on_disk(tmp_path: Path) -> None:
    with place(PlaceName.DISK, tmp_path) as disk:
        score = race(disk, Crowd(drivers=0, delta_rs=3, seconds=2), tmp_path / "notes")
    assert score.acknowledged > 10
    assert score == Score(score.acknowledged, lost=0, doubled=0, errors=score.errors)


def test_a_hole_in_a_log_is_read_notes(tmp_path: Path) -> None:
    with place(PlaceName.DISK, tmp_path) as disk:
        table = Path(disk.new_folder())
        create_table(table)
        for token in ("a", "b"):
            append(table, user_metadata=token)
        assert torn(disk.log_of(str(table))) == ""
        commit_file(table, 1).unlink()
        assert torn(disk.log_of(str(table))) == "version 1 is missing"

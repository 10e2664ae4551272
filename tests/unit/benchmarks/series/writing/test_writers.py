"""Heats of writers go to the session and come back as figures; a lost merge ends the series."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.contention import session
from benchmarks.contention.heat import Heat, Score, Strategy, note_score, read_heats, read_scores, write_heats
from benchmarks.series.writing import writers

SCORE = Score([3, 4], conflicts=14, lost=0, optimized=2, wall_s=35.0, cpu_s=70.0)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(session, "_run", lambda _bench, _name, heats: [SCORE] * len(heats))
    return Bench(tmp_path, rounds=1)


def test_heats_and_scores_come_back_as_they_were(tmp_path: Path) -> None:
    heats = writers._heats(1)
    assert read_heats(write_heats(tmp_path / "new" / "heats.jsonl", heats)) == heats
    for _ in range(2):
        note_score(tmp_path / "scores.jsonl", SCORE)
    assert read_scores(tmp_path / "scores.jsonl") == [SCORE, SCORE]


def test_each_scenario_is_run_by_every_strategy_and_by_one_to_eight_writers(bench: Bench) -> None:
    results = writers.run(bench)
    assert len(results) == len(writers.SCENARIOS) * len(writers.WRITERS)
    assert {tuple(result.sides) for result in results} == {tuple(map(str, Strategy))}
    facts = results[0].facts[Strategy.MILLRACE]
    assert facts == {
        "commits a minute": 12.0,
        "conflicts a commit": 2.0,
        "least over most commits of a writer": 0.75,
        "OPTIMIZEs": 2,
        "lost": 0,
    }
    assert results[0].sides[Strategy.MILLRACE].cpu_s == 10.0


def test_a_lost_merge_ends_the_series(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Score([3, 4], conflicts=0, lost=1, optimized=0, wall_s=35.0, cpu_s=70.0)
    monkeypatch.setattr(session, "_run", lambda _bench, _name, heats: [SCORE] * (len(heats) - 1) + [lost])
    with pytest.raises(RuntimeError, match=r"Heat\(.*1 of 7 merges are not in the table"):
        writers.run(bench)


def test_a_writer_that_never_commits_is_treated_unfairly() -> None:
    assert Score([0, 9], 0, 0, 0, 1.0, 1.0).fairness == 0.0
    assert Score([0], 0, 0, 0, 1.0, 1.0).fairness == 0.0
    assert isinstance(writers._heats(0)[0], Heat)

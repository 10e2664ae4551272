"""Goodput is what more writers get done over what fewer do; a pair below its bar is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.contention import session
from benchmarks.contention.heat import Heat, Keys, Score, Strategy
from benchmarks.result import Result
from benchmarks.series.writing import goodput


def scored(per_writers: dict[int, int], heats: list[Heat]) -> list[Score]:
    """So many merges in a minute by so many writers, whatever their keys; none that count for a heat that does not."""
    merges = [per_writers[heat.writers] if heat.number else 1 for heat in heats]
    return [Score([n], conflicts=0, lost=0, optimized=0, wall_s=60.0, cpu_s=90.0) for n in merges]


def results(folder: Path, monkeypatch: pytest.MonkeyPatch, per_writers: dict[int, int]) -> list[Result]:
    monkeypatch.setattr(session, "_run", lambda _bench, _name, heats: scored(per_writers, heats))
    return goodput.run(Bench(folder, rounds=2))


def test_each_pair_is_judged_by_its_own_bar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two, plain, eight, overlap = results(tmp_path, monkeypatch, {1: 100, 2: 180, 8: 160})
    assert (two.of, two.against, eight.of, overlap.against) == ("2 writers", "1 writer", "8 writers", "1 writer")
    assert two.is_met
    assert plain.wall_target is None, "what the session has to give, not what Millrace does"
    assert not eight.is_met
    assert overlap.is_met


def test_what_warms_the_session_up_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    two, *_ = results(tmp_path, monkeypatch, {1: 100, 2: 180, 8: 160})
    assert two.facts["1 writer"]["commits a minute"] == [100, 100]
    assert two.facts["2 writers"]["cores busy"] == [1.5, 1.5]


def test_a_round_has_each_heat_once_however_many_pairs_it_is_in() -> None:
    which = goodput._which()
    assert len(which) == len(set(which)) == 7
    disjoint = [writers for strategy, keys, writers in which if (strategy, keys) == (Strategy.MILLRACE, Keys.DISJOINT)]
    assert disjoint == [1, 2, 8]

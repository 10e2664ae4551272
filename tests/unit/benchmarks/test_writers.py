"""A heat of writers is scored by what their commits have left in the table."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.bench import Bench
from benchmarks.contention import session
from benchmarks.contention.heat import Score, note_score, read_heats, read_scores, write_heats
from benchmarks.series.writing import writers

SCORE = Score([3, 4], conflicts=14, lost=0, optimized=2, wall_s=35.0, cpu_s=70.0)


def test_heats_and_scores_come_back_as_they_were(tmp_path: Path) -> None:
    heats = writers._heats(1)
    assert read_heats(write_heats(tmp_path / "new" / "heats.jsonl", heats)) == heats
    for _ in range(2):
        note_score(tmp_path / "scores.jsonl", SCORE)
    assert read_scores(tmp_path / "scores.jsonl") == [SCORE, SCORE]


def test_a_lost_merge_ends_the_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = Score([3, 4], conflicts=0, lost=1, optimized=0, wall_s=35.0, cpu_s=70.0)
    monkeypatch.setattr(session, "_run", lambda _bench, _name, heats: [SCORE] * (len(heats) - 1) + [lost])
    with pytest.raises(RuntimeError, match=r"Heat\(.*1 of 7 merges are not in the table"):
        writers.run(Bench(tmp_path, rounds=1))

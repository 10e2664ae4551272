"""A short soak: writers of every kind, killed and stopped; and that its verdict sees what somebody takes away."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from millrace.paths import LakehousePaths
from races.soak.feed import Feed
from races.soak.lives import BRONZE, GOLD, SILVER, TABLES
from races.soak.run import Plan, Score, soak
from races.soak.verdict import problems

SECONDS = 75.0


@pytest.fixture(scope="module")
def soaked(tmp_path_factory: pytest.TempPathFactory) -> tuple[LakehousePaths, Feed, Score]:
    folder, feeds = tmp_path_factory.mktemp("soak"), []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("races.soak.run.Feed", lambda *given: feeds.append(Feed(*given)) or feeds[0])
        score = soak(Plan(folder / "soak", SECONDS, writers=4, delivery_s=3, strike_s=4, seed=7), say=print)
    return LakehousePaths(folder / "soak" / "lakehouse"), feeds[0], score


@pytest.mark.faults
def test_nothing_is_lost_or_doubled(soaked: tuple[LakehousePaths, Feed, Score]) -> None:
    _, feed, score = soaked
    assert score.problems == []
    assert score.events == len(feed.events) > 1000
    assert set(score.batches) == set(TABLES)
    assert min(score.batches.values()) > 3
    assert score.strikes["SIGKILL"] > 3
    assert score.strikes["SIGKILL of the Spark server"] == 2
    assert min(score.traces.values()) > 0, score.traces
    assert sum(endings["killed"] for endings in score.ended.values()) > 3


@pytest.mark.faults
def test_a_row_and_a_commit_that_somebody_takes_away_are_missed(soaked: tuple[LakehousePaths, Feed, Score]) -> None:
    paths, feed, _ = soaked
    for table, column in {BRONZE: "event", SILVER: "event", GOLD: "orders"}.items():
        delta = DeltaTable(str(paths.table(table)))
        victim, before = delta.to_pyarrow_table(columns=[column])[column][0].as_py(), delta.version()
        delta.delete(f"{column} = {victim}")
        found = problems(paths, feed.events)
        assert any(line.startswith(f"{table.partition('.')[0]} rows: ") and "lost" in line for line in found), found
        assert any(line.startswith(f"{table}: version {before + 1} is not certified") for line in found), found
    log = sorted((Path(str(paths.table(BRONZE))) / "_delta_log").glob("*.json"))
    log[len(log) // 2].unlink()
    assert any("is missing" in line for line in problems(paths, feed.events))

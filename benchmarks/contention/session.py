"""Run heats in one warm session of Millrace, and read their scores."""

from __future__ import annotations

from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.contention.heat import Heat, Score, read_scores, write_heats
from benchmarks.cost import measure
from benchmarks.peers import Millrace
from embedded.clone import CLONE

PATIENCE_S = 4 * 3600.0


def scores_of(bench: Bench, name: str, heats: list[Heat]) -> list[tuple[Heat, Score]]:
    """Run the heats one after another, and return the scores of those that count.

    Args:
        bench: where to work.
        name: of the series: its folder and its log.
        heats: those of round 0 warm up the session, and do not count.

    Raises:
        RuntimeError: if merges were acknowledged in any heat that are not in its table, or are in it twice.
    """
    scored = list(zip(heats, _run(bench, name, heats), strict=True))
    for heat, score in scored:
        if score.lost:
            raise RuntimeError(f"{heat}: {score.lost} of {score.all} merges are not in the table")
    return [(heat, score) for heat, score in scored if heat.number]


def _run(bench: Bench, name: str, heats: list[Heat]) -> list[Score]:
    folder, millrace = bench.fresh(name), Millrace(large_load=True)
    plan, scores = write_heats(folder / "heats.jsonl", heats), folder / "scores.jsonl"
    script = CLONE / "benchmarks" / "contention" / "run_heats.py"
    command = millrace.application(script, str(plan), str(scores), str(folder / "lake"))
    log: Path = bench.folder / "logs" / f"{name}.log"
    measure(command, millrace.environment(), log, patience_s=PATIENCE_S)
    return read_scores(scores)

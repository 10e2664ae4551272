"""Run heats one after another in one warm session.

spark-submit run_heats.py HEATS SCORES FOLDER     HEATS: see `heat.write_heats`
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event, Lock

from benchmarks.contention.counters import create, hits
from benchmarks.contention.heat import Heat, Score, note_score, read_heats
from benchmarks.contention.strategies import TABLE, Write, optimizer, writer
from benchmarks.cost import cpu_of_tree
from millrace.paths import LakehousePaths
from millrace_spark.runtime.entrypoint import start_process

PAUSE_S = 1.0
"""Seconds between two OPTIMIZEs."""


def main(heats: Path, scores: Path, folder: Path) -> None:
    """Run the heats, and note their scores."""
    start_process()
    for heat in read_heats(heats):
        shutil.rmtree(folder, ignore_errors=True)
        note_score(scores, run(heat, LakehousePaths(folder)))


def run(heat: Heat, paths: LakehousePaths) -> Score:
    """Run a heat on its own table."""
    table = paths.table(TABLE)
    assert isinstance(table, Path)
    create(table)
    lock, over, java = Lock(), Event(), os.getppid()
    started, cpu_s = time.monotonic(), cpu_of_tree(java)
    with ThreadPoolExecutor(heat.writers + 1) as pool:
        beside = pool.submit(_optimize_until, over, heat, paths) if heat.optimize else None
        deadline = started + heat.seconds
        racing = [pool.submit(_write_until, deadline, writer(heat, paths, n, lock)) for n in range(heat.writers)]
        ended = [writer.result() for writer in racing]
        wall_s, spent = time.monotonic() - started, cpu_of_tree(java) - cpu_s
        over.set()
        optimized = beside.result() if beside else 0
    commits = [done for done, _ in ended]
    lost = sum(commits) - hits(table)
    return Score(commits, sum(met for _, met in ended), lost, optimized, wall_s, spent)


def _write_until(deadline: float, write: Write) -> tuple[int, int]:
    done = conflicts = 0
    while time.monotonic() < deadline:
        conflicts += write()
        done += 1
    return done, conflicts


def _optimize_until(over: Event, heat: Heat, paths: LakehousePaths) -> int:
    done, optimize = 0, optimizer(heat, paths)
    while not over.wait(PAUSE_S):
        optimize()
        done += 1
    return done


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

"""A race: writers without a lease load the same files, are killed anywhere, and are started again.

python -m tests.support.protocol_race.race --scheme millrace --seed 1 --folder /tmp/race
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from include.contracts.interval import Interval
from include.control.ledger.ledger import Ledger
from include.control.log.batch import Stream
from include.errors import ConflictError
from include.paths import LakehousePaths
from spark_jobs.protocol.batches import BatchRequest, BatchWriter
from tests.support.protocol_race.delta_writer import create_table, session_opener
from tests.support.protocol_race.schemes import SCHEMES

DAY = Interval(start=datetime(2013, 1, 1, tzinfo=UTC), end=datetime(2013, 1, 2, tzinfo=UTC))
WRITERS = 4
CHANCE_OF_DEATH = 0.05
CHANCE_OF_PAUSE = 0.4
LONGEST_PAUSE_S = 0.05
MOST_LIVES = 400


@dataclass(frozen=True)
class Score:
    """The result of a race.

    Attributes:
        deaths: the number of killed writers.
        lost: the number of files without a row in the table, or in the quarantine.
        doubled: the number of files with several rows.
        finished: all writers ended by themselves, because nothing was left to do.
    """

    deaths: int
    lost: int
    doubled: int
    finished: bool


def race(scheme: str, seed: int, lake: Path, files: int = 16) -> Score:
    """Run one race in `lake` and count what was lost or doubled."""
    names = tuple(f"orders_{number:03d}.json" for number in range(files))
    for table in ("bronze/orders", "bronze_quarantine/orders"):
        create_table(lake / table)
    deaths, finished = _keep_writers_alive(scheme, seed, lake, names)
    return _score(lake, names, deaths, finished)


def _keep_writers_alive(scheme: str, seed: int, lake: Path, names: tuple[str, ...]) -> tuple[int, bool]:
    """Return deaths, and whether all writers ended by themselves. They are forked, because imports cost much."""
    context, lives, deaths, running = multiprocessing.get_context("fork"), 0, 0, {}
    idle = 0
    while idle < WRITERS and lives < MOST_LIVES:
        while len(running) < WRITERS - idle:
            lives += 1
            process = context.Process(target=_write_until_done, args=(scheme, seed * 10_000 + lives, lake, names))
            process.start()
            running[process.pid] = process
        time.sleep(0.01)
        for pid, process in list(running.items()):
            if process.exitcode is not None:
                del running[pid]
                idle += process.exitcode == 0
                deaths += process.exitcode == -signal.SIGKILL
    for process in running.values():
        process.kill()
    return deaths, idle == WRITERS


def _write_until_done(scheme: str, seed: int, lake: Path, names: tuple[str, ...]) -> None:
    chance = random.Random(seed)
    ledger = Ledger(LakehousePaths(lake))
    request = BatchRequest(lake / "bronze" / "orders", Stream("bronze.orders"), DAY, f"writer {seed}", "hash")

    def pause(_: str) -> None:
        if chance.random() < CHANCE_OF_DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        if chance.random() < CHANCE_OF_PAUSE:
            time.sleep(chance.random() * LONGEST_PAUSE_S)

    while True:
        work = SCHEMES[scheme](lake, names, ledger, chance, pause)
        try:
            if not BatchWriter(request, work, ledger, session_opener(pause)).run_unleased().committed:
                sys.exit(0)
        except ConflictError:
            continue


def _score(lake: Path, names: tuple[str, ...], deaths: int, finished: bool) -> Score:
    from deltalake import DeltaTable  # Imported here: a process that has used delta-rs cannot be forked.

    lost = doubled = 0
    for table in ("bronze/orders", "bronze_quarantine/orders"):
        rows = Counter(DeltaTable(str(lake / table)).to_pyarrow_table()["source"].to_pylist())
        lost += sum(rows[name] == 0 for name in names)
        doubled += sum(rows[name] > 1 for name in names)
    return Score(deaths, lost, doubled, finished)


def main(scheme: str, first_seed: str, seeds: str, folder: str) -> None:
    """Run the races one after another, each in its own fork, and print the sum of their scores."""
    context = multiprocessing.get_context("fork")
    scores = context.Queue()
    totals: Counter[str] = Counter(finished=0)
    for seed in range(int(first_seed), int(first_seed) + int(seeds)):
        lake = Path(folder) / f"{scheme.replace(' ', '_')}_{seed}"
        process = context.Process(target=lambda seed=seed, lake=lake: scores.put(asdict(race(scheme, seed, lake))))
        process.start()
        totals.update({name: int(value) for name, value in scores.get(timeout=300).items()})
        process.join()
    sys.stdout.write(json.dumps(totals))


if __name__ == "__main__":
    main(*sys.argv[1:])

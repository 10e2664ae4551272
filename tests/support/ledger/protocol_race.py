"""A race: writers without a lease load the same files, are killed anywhere, and are started again.

    python -m tests.support.ledger.protocol_race SCHEME LAKE...

runs a race in each lakehouse, and prints how many writers were killed, and how many races ended because nothing was
left to do. The writers are forked, because imports cost much; a process that has used delta-rs cannot be forked, so
that only they use it.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import nullcontext, suppress
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from millrace.contracts.job.report import RowCounts
from millrace.control.ledger.events import BatchEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, StreamPosition, Winner
from millrace.errors import ConflictError
from millrace.paths import LakehousePaths
from millrace_spark.protocol.batches import BatchPlan, BatchRequest, BatchWriter, Closing
from tests.support.ledger.delta_tables import day, properties_of
from tests.support.ledger.ledger_reading import loaded_by_path

TABLES = ORDERS, QUARANTINE = "bronze.orders", "bronze_quarantine.orders"
FILES = tuple(f"orders_{number:03d}.json" for number in range(16))
WRITERS = 4
CHANCE_OF_DEATH = 0.05
CHANCE_OF_PAUSE = 0.4
LONGEST_PAUSE_S = 0.05
MOST_LIVES = 400


def table_in(lake: Path, table: str) -> Path:
    return lake.joinpath(*table.split("."))


class LoadFiles:
    """The `BatchWork` of the race: load some files that are not loaded yet, and quarantine a row of each."""

    def __init__(self, lake: Path, ledger: Ledger, chance: random.Random) -> None:
        self.lake, self.ledger, self.chance = lake, ledger, chance

    def pause(self) -> None:
        if self.chance.random() < CHANCE_OF_DEATH:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.chance.random() < CHANCE_OF_PAUSE:
            time.sleep(self.chance.random() * LONGEST_PAUSE_S)

    def done(self, position: StreamPosition) -> set[str]:
        return set(loaded_by_path(self.ledger, ORDERS, position.table_id))

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        self.pause()
        left = [name for name in FILES if name not in self.done(position)]
        taken = self.chance.sample(left, min(len(left), self.chance.randint(1, 4)))
        facts = tuple(FileFact(path=name, size=1, mtime_ns=1, checksum=name) for name in sorted(taken))
        return BatchPlan(BatchSources(files=len(facts)), facts) if facts else None

    def write(self, _: object, intent: Intent, plan: BatchPlan) -> None:
        self.pause()
        self.append(ORDERS, [file.path for file in plan.files], intent, intent.app_id)

    def close(self, winner: Winner) -> Closing:
        self.pause()
        files = [file.path for file in self.ledger.files_of(winner.intent)]
        with suppress(CommitFailedError):  # another writer closes the same batch
            self.append(QUARANTINE, files, winner.intent, winner.intent.secondary_app_id(QUARANTINE))
        self.pause()
        return Closing(RowCounts(read=len(files), applied=len(files), inserted=len(files)))

    def append(self, table: str, files: list[str], intent: Intent, app_id: str) -> None:
        """Append a row for each file in one commit by Delta's rules: one whose number is recorded is left out."""
        delta = DeltaTable(str(table_in(self.lake, table)))
        if (delta.transaction_version(app_id) or 0) >= intent.batch_seq:
            return
        self.pause()
        properties = properties_of((app_id, intent.batch_seq), intent.user_metadata())
        write_deltalake(delta, pa.table({"source": files}), mode="append", commit_properties=properties)
        self.pause()


class TrustTheLedger(LoadFiles):
    """Broken: it takes every intent up to the last committed number for committed."""

    def done(self, position: StreamPosition) -> set[str]:
        last = position.last.batch_seq if position.last else 0
        intents = self.ledger._batches.events(ORDERS, event=BatchEvent.INTENT)
        done = [row["token"] for row in intents if row["batch_seq"] <= last]
        return {row["path"] for row in self.ledger._files.events(ORDERS) if row["token"] in done}


SCHEMES = {"millrace": LoadFiles, "trust the ledger": TrustTheLedger}


def race(scheme: str, seed: int, lake: Path) -> tuple[int, bool]:
    """Keep writers alive; return how many were killed, and whether all ended because nothing was left to do."""
    context, lives, deaths, idle, running = multiprocessing.get_context("fork"), 0, 0, 0, []
    while idle < WRITERS and lives < MOST_LIVES:
        while len(running) < WRITERS - idle:
            lives += 1
            running.append(context.Process(target=write_until_done, args=(scheme, seed * 10_000 + lives, lake)))
            running[-1].start()
        time.sleep(0.01)
        ended = [process for process in running if process.exitcode is not None]
        running = [process for process in running if process not in ended]
        idle += sum(process.exitcode == 0 for process in ended)
        deaths += sum(process.exitcode == -signal.SIGKILL for process in ended)
    for process in running:
        process.kill()
    return deaths, idle == WRITERS


def write_until_done(scheme: str, seed: int, lake: Path) -> None:
    ledger, chance = Ledger(LakehousePaths(lake)), random.Random(seed)
    request = BatchRequest(table_in(lake, ORDERS), Stream(ORDERS), day(), f"writer {seed}", "hash", lambda: day().end)
    while True:
        work = SCHEMES[scheme](lake, ledger, chance)
        with suppress(ConflictError):
            if not BatchWriter(request, work, ledger, nullcontext).run_unleased().committed:
                return


if __name__ == "__main__":
    results = [race(sys.argv[1], seed, Path(lake)) for seed, lake in enumerate(sys.argv[2:])]
    deaths, finished = map(sum, zip(*results, strict=True))
    sys.stdout.write(json.dumps({"deaths": deaths, "finished": finished}))

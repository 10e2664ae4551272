"""The commit protocol, and a simpler scheme that was tried before it, which loses rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from include.contracts.job.report import RowCounts
from include.control.ledger.events import BatchEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import BatchSources, FileFact, Intent, StreamPosition, Winner
from spark_jobs.protocol.batches import BatchPlan, Closing, commit_conf
from tests.support.ledger.ledger_reading import loaded_by_path
from tests.support.protocol_race.delta_writer import TXN, Session, session_opener, snapshot


class LoadFiles:
    """The `BatchWork` of the race: load some files that are not loaded yet, and quarantine a row of each."""

    def __init__(self, lake: Path, files: tuple[str, ...], ledger: Ledger, chance: random.Random, pause: Any) -> None:
        self.table, self.quarantine = lake / "bronze" / "orders", lake / "bronze_quarantine" / "orders"
        self.ledger, self.chance, self.pause, self.files = ledger, chance, pause, files

    def done(self, position: StreamPosition) -> set[str]:
        return set(loaded_by_path(self.ledger, "bronze.orders", position.table_id))

    def plan(self, position: StreamPosition) -> BatchPlan | None:
        self.pause("resolved")
        left = [name for name in self.files if name not in self.done(position)]
        taken = self.chance.sample(left, min(len(left), self.chance.randint(1, 4)))
        facts = tuple(FileFact(path=name, size=1, mtime_ns=1, checksum=name) for name in sorted(taken))
        return BatchPlan(BatchSources(files=len(facts)), facts) if facts else None

    def write(self, session: Session, intent: Intent, plan: BatchPlan) -> None:
        self.pause("intent recorded")
        session.append(self.table, [file.path for file in plan.files])

    def close(self, winner: Winner) -> Closing:
        self.pause("before close")
        files = [file.path for file in self.ledger.files_of(winner.intent)]
        self.write_quarantine(winner.intent, files)
        self.pause("before closed")
        return Closing(RowCounts(read=len(files), applied=len(files), inserted=len(files)))

    def write_quarantine(self, intent: Intent, files: list[str]) -> None:
        app_id = intent.secondary_app_id("bronze_quarantine.orders")
        if snapshot(self.quarantine, app_id)[1] >= intent.batch_seq:
            return
        with session_opener(self.pause)({**commit_conf(intent), f"{TXN}txnAppId": app_id}) as session:
            try:
                session.append(self.quarantine, files)
            except Exception as error:
                if type(error).__name__ != "ConcurrentTransactionException":
                    raise


class TrustTheLedger(LoadFiles):
    """Broken: it takes every intent up to the last committed number for committed."""

    def done(self, position: StreamPosition) -> set[str]:
        last = position.last.batch_seq if position.last else 0
        intents = self.ledger._batches.events("bronze.orders", event=BatchEvent.INTENT)
        done = [row["token"] for row in intents if row["batch_seq"] <= last]
        planned = self.ledger._files.events("bronze.orders")
        return {row["path"] for row in planned if row["token"] in done}


SCHEMES = {"millrace": LoadFiles, "trust the ledger": TrustTheLedger}

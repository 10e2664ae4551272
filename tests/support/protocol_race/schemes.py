"""The commit protocol, and simpler schemes that were tried before it, each of which loses or doubles rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from include.contracts.job.report import RowCounts
from include.control.ledger.events import BatchEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import BatchSources, FileFact, Intent, StreamPosition, Winner
from include.control.log.delta_log import commits_after
from spark_jobs.protocol.batches import BatchPlan, BatchWriter, Closing, commit_conf
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


class QuarantineFirst(LoadFiles):
    """Broken: it does the secondary write before the main commit, under the same number."""

    def write(self, session: Session, intent: Intent, plan: BatchPlan) -> None:
        self.pause("intent recorded")
        self.write_quarantine(intent, [file.path for file in plan.files])
        super().write(session, intent, plan)

    def close(self, winner: Winner) -> Closing:
        files = len(self.ledger.files_of(winner.intent))
        return Closing(RowCounts(read=files, applied=files, inserted=files))


class NumberByLedger(BatchWriter):
    """Broken: the number of a batch is one more than the greatest number of an intent."""

    def _plan_and_commit(self) -> Any:
        position = self._position()
        plan = self._work.plan(position)
        if plan is None:
            return self.result
        intents = self._ledger._batches.events("bronze.orders", event=BatchEvent.INTENT)
        number = max((row["batch_seq"] for row in intents), default=0) + 1
        intent = self._intent(position, plan).model_copy(update={"batch_seq": number})
        self._ledger.record_intent(intent, plan.files)
        winner = self._commit(intent, plan, position)
        self._ledger.record_committed([winner])
        self._work.close(winner)
        self.result.committed = True
        return self.result

    def _position(self) -> StreamPosition:
        table = self._request.path
        commits = list(commits_after(table, -1))
        won = [Winner(Intent.model_validate(commit.metadata), commit.version) for commit in commits if commit.metadata]
        known = {row["token"] for row in self._ledger._batches.events("bronze.orders", event=BatchEvent.COMMITTED)}
        self._ledger.record_committed([winner for winner in won if winner.token not in known])
        table_id = str(DeltaTable(str(table)).metadata().id)
        return StreamPosition(table_id, commits[-1].version, last=won[-1] if won else None)


SCHEMES: dict[str, tuple[type[BatchWriter], type[LoadFiles]]] = {
    "millrace": (BatchWriter, LoadFiles),
    "number by ledger": (NumberByLedger, LoadFiles),
    "trust the ledger": (BatchWriter, TrustTheLedger),
    "quarantine first": (BatchWriter, QuarantineFirst),
}

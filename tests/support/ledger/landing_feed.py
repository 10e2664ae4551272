"""Deliveries of orders, planned and loaded by the ledger without Spark."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from millrace.control.landing.earlier_runs import EarlierRuns
from millrace.control.landing.ingest import FilePlan, plan_files
from millrace.control.landing.inspection import inspect
from millrace.control.landing.matching import ReadFile
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.ledger.events import FileEvent
from millrace.control.ledger.ledger import Ledger
from millrace.control.log.batch import BatchSources, FileFact, Intent, Stream, Winner
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, intent_of

SPEC = bronze_spec()
ORDERS = Stream("bronze.orders")


@dataclass(frozen=True)
class Feed:
    """The deliveries of orders, and the ledger of the table that loads them; each plan is that of another run."""

    deliver: Deliver
    ledger: Ledger

    @property
    def place(self) -> LocalLanding:
        """The landing root."""
        return LocalLanding(str(self.deliver.landing))

    def plan(self, table_id: str = "id", read_file: ReadFile | None = None, **source: object) -> FilePlan:
        """Plan the next batch of the first day; `source` changes the spec's source."""
        spec = bronze_spec(source={**SPEC.source.model_dump(), **source})
        loaded, earlier = (
            self.ledger.loaded_files(spec.table, table_id),
            EarlierRuns(spec.table, table_id, self.ledger, []),
        )
        reads = read_file or partial(inspect, landing=self.place, spec=spec)
        return plan_files(spec, self.place, day(1), loaded, earlier, reads)

    def load(self, batch_seq: int = 1, **source: object) -> tuple[FileFact, ...]:
        """Load the files of the next plan, and return them."""
        new = self.plan(**source).new
        self.ledger.record_committed([Winner(self.attempt(new, batch_seq), batch_seq)])
        return new

    def attempt(
        self, files: tuple[FileFact, ...], batch_seq: int = 1, ends_with: type[Exception] | None = None
    ) -> Intent:
        """Record the intent of an attempt to load files; unless it ends with an error, it is dead until it wins."""
        intent = intent_of("id", batch_seq, stream=ORDERS, sources=BatchSources(files=len(files)))
        self.ledger.record_intent(intent, files)
        if ends_with:
            with suppress(ends_with), self.ledger.attempts.outlived(intent, lambda _: False):
                raise ends_with
        return intent

    def record(self, event: FileEvent, files: tuple[FileFact, ...]) -> None:
        """Record an event of files of the first day."""
        self.ledger.record_files(event, SPEC.table, "id", day(1), files)


def file_names(files: tuple[FileFact, ...]) -> list[str]:
    """Return the names of files, without their folders."""
    return [Path(file.path).name for file in files]

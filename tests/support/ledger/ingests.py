"""Plan and load the landing files of `bronze.orders` as its batches do, without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from include.control.landing.ingest import FilePlan, plan_files
from include.control.landing.inspection import inspect
from include.control.landing.matching import ReadFile
from include.control.landing.on_disk import LocalLanding
from include.control.ledger.events import FileEvent
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream, Winner
from tests.support.deliveries import Deliver
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, intent_of

SPEC = bronze_spec()
ORDERS = Stream("bronze.orders")


@dataclass(frozen=True)
class Feed:
    """The deliveries of orders, and the ledger of the table that loads them."""

    deliver: Deliver
    ledger: Ledger

    @property
    def place(self) -> LocalLanding:
        """Where the files are."""
        return LocalLanding(str(self.deliver.landing))

    def plan(self, table_id: str = "id", read_file: ReadFile | None = None, **source: object) -> FilePlan:
        """Plan the next batch of the first day; `source` changes the spec's source."""
        spec = bronze_spec(source={**SPEC.source.model_dump(), **source})
        loaded = self.ledger.loaded_files(spec.table, table_id)
        failures = partial(self.ledger.failures, spec.table, table_id)
        reads = read_file or partial(inspect, landing=self.place, spec=spec)
        return plan_files(spec, self.place, day(1), loaded, lambda paths: failures(path=paths), reads)

    def load(self, batch_seq: int = 1, **source: object) -> tuple[FileFact, ...]:
        """Load the first day's next batch."""
        new = self.plan(**source).new
        intent = intent_of("id", batch_seq, stream=ORDERS)
        self.ledger.record_intent(intent, new)
        self.ledger.record_committed([Winner(intent, batch_seq)])
        return new

    def record(self, event: FileEvent, files: tuple[FileFact, ...]) -> None:
        """Record an event of files of the first day that belongs to no batch."""
        self.ledger.record_files(event, SPEC.table, "id", day(1), files)


def file_names(files: tuple[FileFact, ...]) -> list[str]:
    """Return the names of the files, without their folders."""
    return [Path(file.path).name for file in files]

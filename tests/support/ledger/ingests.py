"""Plan and load the landing files of `bronze.orders` as its batches do, without Spark."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from include.control.landing.ingest import FilePlan, plan_files
from include.control.landing.inspection import inspect
from include.control.landing.matching import ReadFile
from include.control.landing.on_disk import LocalLanding
from include.control.ledger.ledger import Ledger
from include.control.log.batch import FileFact, Stream, Winner
from tests.support.documents.specs import bronze_spec
from tests.support.ledger.delta_tables import day, intent_of

SPEC = bronze_spec()
ORDERS = Stream("bronze.orders")


def plan(
    landing: Path, ledger: Ledger, table_id: str = "id", read_file: ReadFile | None = None, **source: object
) -> FilePlan:
    """Plan the next batch of the first day; `source` changes the spec's source."""
    spec = bronze_spec(source={**SPEC.source.model_dump(), **source})
    loaded = ledger.loaded_files(spec.table, table_id)
    place, failures = LocalLanding(str(landing)), partial(ledger.failures, spec.table, table_id)
    return plan_files(
        spec,
        place,
        day(1),
        loaded,
        lambda paths: failures(path=paths),
        read_file or partial(inspect, landing=place, spec=spec),
    )


def load(landing: Path, ledger: Ledger, batch_seq: int = 1, **source: object) -> tuple[FileFact, ...]:
    """Load the first day's next batch."""
    new = plan(landing, ledger, **source).new
    intent = intent_of("id", batch_seq, stream=ORDERS)
    ledger.record_intent(intent, new)
    ledger.record_committed([Winner(intent, batch_seq)])
    return new


def file_names(files: tuple[FileFact, ...]) -> list[str]:
    """Return the names of the files, without their folders."""
    return [Path(file.path).name for file in files]

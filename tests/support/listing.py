"""The files of a landing folder, as listed and as inspected."""

from __future__ import annotations

import shutil
from collections.abc import Collection

from millrace.contracts.interval import Interval
from millrace.contracts.spec.table_spec import BronzeSpec
from millrace.control.landing.inspection import inspect
from millrace.control.landing.landing import Landing, interval_files
from millrace.control.landing.on_disk import LocalLanding
from millrace.control.log.batch import FileFact
from tests.support.deliveries import Deliver
from tests.support.ledger.delta_tables import day


def list_files(spec: BronzeSpec, landing: Landing, interval: Interval) -> tuple[FileFact, ...]:
    """Return all files of the interval, sorted by name."""
    return tuple(sorted(interval_files(spec, landing, interval), key=lambda file: file.path))


def inspected(
    deliver: Deliver, spec: BronzeSpec, name: str, content: bytes | str, needed: Collection[str] = ()
) -> FileFact:
    """Deliver a file in place of the others of its folder, and return it after its inspection."""
    shutil.rmtree(deliver(name, content).parent)
    deliver(name, content)
    place = LocalLanding(str(deliver.landing))
    (file,) = list_files(spec, place, day())
    return inspect(file, place, spec, needed)

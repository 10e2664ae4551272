"""The files of a landing folder, for comparisons."""

from __future__ import annotations

from include.contracts.interval import Interval
from include.contracts.spec.table_spec import BronzeSpec
from include.control.landing.landing import Landing, interval_files
from include.control.log.batch import FileFact


def list_files(spec: BronzeSpec, landing: Landing, interval: Interval) -> tuple[FileFact, ...]:
    """Return all files of the interval, sorted by name."""
    return tuple(sorted(interval_files(spec, landing, interval), key=lambda file: file.path))

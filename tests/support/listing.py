"""What lies in a landing folder, as tests compare it."""

from __future__ import annotations

from include.contracts.interval import Interval
from include.contracts.table_spec import BronzeSpec
from include.control.batch import FileFact
from include.control.landing import Landing, each_file


def list_files(spec: BronzeSpec, landing: Landing, interval: Interval) -> tuple[FileFact, ...]:
    """The interval's files by name: all of `each_file`."""
    return tuple(sorted(each_file(spec, landing, interval), key=lambda file: file.path))

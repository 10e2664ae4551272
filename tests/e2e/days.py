"""The days that the end-to-end tests load, and how long they wait for one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from embedded.airflow.api import Run

FIRST = date(2013, 1, 1)
SECOND = date(2013, 1, 2)
THIRD = date(2013, 1, 3)
PATIENCE_S = 600

RunDay = Callable[[str, date], Run]
"""Starts a run of a DAG for a day by hand."""

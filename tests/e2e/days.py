"""The days that the end-to-end tests load, and how long they wait for one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from embedded.airflow.api import Run

FIRST, SECOND, THIRD, FOURTH = (date(2013, 1, day) for day in (1, 2, 3, 4))
PATIENCE_S = 600

StartDay = Callable[[str, date], Run]
"""Starts a run of a DAG for a day by hand."""

LoadDay = Callable[..., Run]
"""Delivers the readings of a domain's day, runs the day by hand, and gives the run at its end."""

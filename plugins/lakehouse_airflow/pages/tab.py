"""A tab of the page of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lakehouse_airflow.pages.airflow_dags import Runs
from millrace.control.ledger.states.recent_batches import RecentBatch
from millrace.overview.lakehouse import LakehouseReader
from millrace.overview.tables.table_overview import TableOverview


@dataclass(frozen=True)
class ShownTable:
    """The table of a page, for the module of its tab.

    Attributes:
        overview: its condition and facts.
        reader: reads more of it; `with shown.reader.ledger() as ops` lends the ledger.
        may_see_rows: whether the user may see values of its rows.
        now: the time of the page.
        all_tables: returns every table of the lakehouse.
        existing_runs: returns the runs of some of its batches, those that Airflow has.
        query: the values in the address of the page.
    """

    overview: TableOverview
    reader: LakehouseReader
    may_see_rows: bool
    now: datetime
    all_tables: Callable[[], Sequence[TableOverview]]
    existing_runs: Callable[[Iterable[RecentBatch]], Runs]
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Tab:
    """A tab.

    Attributes:
        name: its name in the address, and of its template in `templates/table`.
        title: its title.
        values: returns the values for its template.
        fits: whether a table has this tab.
    """

    name: str
    title: str
    values: Callable[[ShownTable], Mapping[str, Any]]
    fits: Callable[[TableOverview], bool] = lambda _: True

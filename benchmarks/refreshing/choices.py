"""The 24 cases in which a refresh of gold has to choose, each computed both ways in one session.

spark-submit choices.py WORK COSTS FACTS     WORK: JSON of `folder`, `rows` and `rounds`

The cost of each run is noted under the name that `series/gold_choice.py` reads; FACTS gets, for each case, what the
refresh knew when it chose. The first round warms up.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

from benchmarks.comparison import require_same_digest
from benchmarks.cost import noted
from benchmarks.refreshing.shop import BY_CUSTOMER, BY_DAY, BY_MONTH, GOLD, Shop
from benchmarks.table_files import linked_copy
from include.control.planning.refresh_cost import RefreshCost
from spark_jobs.runtime.entrypoint import start_process
from spark_jobs.runtime.session import own_session

INCREMENTAL, WHOLE = "incremental", "whole"
CHANGES = {
    "0.1 % recent": "id >= {rows} * 0.999",
    "0.1 % all over": "pmod(id, 1000) = 7",
    "30 % recent": "id >= {rows} * 0.7",
}
"""What is changed -> the condition on an order; the newest orders have the last days, or the last customers."""

LAYOUTS = {
    BY_DAY: tuple(GOLD),
    BY_CUSTOMER: tuple(GOLD),
    BY_MONTH: ("gold.by_day", "gold.places"),
}
"""The layout of the orders -> the gold tables that are refreshed."""

CASES = [(layout, change, table) for layout, tables in LAYOUTS.items() for change in CHANGES for table in tables]


ROWS = {
    "gold.by_day": ["day", "country", "orders", "total", "largest"],
    "gold.by_customer": ["customer", "orders", "total", "largest"],
    "gold.places": ["id", "day", "customer", "amount", "place"],
}
"""Gold table -> the compared columns."""


def case_name(layout: str, change: str, table: str) -> str:
    """Return the name of a case."""
    return f"{table}, {layout}, {change}"


def main(work: Path, costs: Path, facts: Path) -> None:
    """Make the lakes, then compute each case both ways in turn."""
    start_process()
    asked = json.loads(work.read_text())
    folder, rows = Path(asked["folder"]), int(asked["rows"])
    with own_session({}) as session:
        for layout, tables in LAYOUTS.items():
            base = Shop(session, folder / layout.replace(" ", "_"))
            base.create(rows, layout)
            for table in tables:
                base.refresh(table)
            for change, where in CHANGES.items():
                changed = Shop(session, linked_copy(base.folder, folder / f"{layout} {change}".replace(" ", "_")))
                changed.change(where.format(rows=rows))
        for number in range(1, asked["rounds"] + 2):
            for layout, change, table in CASES[:: 1 if number > 1 else 11]:
                changed = Shop(session, folder / f"{layout} {change}".replace(" ", "_"))
                _measure(session, changed, table, f"{case_name(layout, change, table)}/{number}", costs, facts)


def _measure(session: SparkSession, changed: Shop, table: str, name: str, costs: Path, facts: Path) -> None:
    copies = {
        way: Shop(session, linked_copy(changed.folder, changed.folder.with_name(re.sub(r"\W+", "_", f"{name} {way}"))))
        for way in (INCREMENTAL, WHOLE)
    }
    with noted(costs, f"{name}/{WHOLE}"):
        copies[WHOLE].refresh(table, reprocess=True)
    # The run computes the touched groups whatever they cost; what it knew is judged afterwards.
    with patch.object(RefreshCost, "is_whole_cheaper", False), noted(costs, f"{name}/{INCREMENTAL}"):
        report = copies[INCREMENTAL].refresh(table)
    relations = {way: f"delta_scan('{copy.paths.table(table)}')" for way, copy in copies.items()}
    require_same_digest(ROWS[table], relations)
    with facts.open("a") as out:
        out.write(f"{json.dumps({'name': name, 'notes': report.notes, **report.details['refresh']})}\n")
    for copy in copies.values():
        shutil.rmtree(copy.folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

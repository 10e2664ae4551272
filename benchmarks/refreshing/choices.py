"""Cases in which a refresh of gold has to choose, each computed both ways in one session.

spark-submit choices.py WORK COSTS FACTS     WORK: JSON of `folder`, `cases` and `rounds`

The cost of each run is noted under the name that `series/gold_choice.py` reads; FACTS gets, for each case, what the
refresh knew when it chose. The first round warms up.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from unittest.mock import patch

from benchmarks.comparison import require_same_digest
from benchmarks.cost import noted
from benchmarks.refreshing.shop import SILVER, Shop
from benchmarks.table_files import linked_copy
from millrace.control.log.followed_tables import newest_table
from millrace.control.planning.refresh_cost import RefreshCost
from millrace_spark.runtime.entrypoint import start_process
from millrace_spark.runtime.session import own_session

INCREMENTAL, WHOLE = "incremental", "whole"
NEWEST, TENTH, MOST, SPREAD = "the newest day", "the newest 10 %", "the newest 40 %", "50 customers"
TWO_DAYS, MONTH, QUARTER, MANY = "the newest two days", "the newest 3 %", "the newest 25 %", "500 customers"
CHANGES = {
    NEWEST: "id >= {rows} * 0.999",
    TENTH: "id >= {rows} * 0.9",
    MOST: "id >= {rows} * 0.6",
    SPREAD: "customer < 50",
    TWO_DAYS: "id >= {rows} * 0.998",
    MONTH: "id >= {rows} * 0.97",
    QUARTER: "id >= {rows} * 0.75",
    MANY: "customer < 500",
}
"""What is changed -> the condition on an order. A day, and 50 customers, have 0.1 % of the orders."""

Case = tuple[int, str, str]
"""The number of orders, which of them changed, and the gold table."""


def _cases(sizes: Iterable[int], changes: Mapping[str, Iterable[str]]) -> list[Case]:
    return [(rows, change, table) for rows in sizes for table, of_table in changes.items() for change in of_table]


CASES = _cases(
    (200_000, 1_500_000, 6_000_000),
    {
        "gold.by_day": (NEWEST, TENTH, MOST, SPREAD),
        "gold.by_customer": (NEWEST, SPREAD),
        "gold.places": (NEWEST, MOST),
    },
)
"""The cases from which the weights of `RefreshCost` are."""

OTHER_CASES = _cases(
    (500_000, 3_000_000, 10_000_000),
    {
        "gold.by_day": (MONTH,),
        "gold.by_customer": (MANY,),
        "gold.by_segment": (TWO_DAYS, QUARTER, MANY),
        "gold.by_basket": (TWO_DAYS, MONTH),
        "gold.places": (MONTH,),
    },
)
"""Cases of other sizes, changes and tables, by which no weight was chosen."""

ROWS = {
    "gold.by_day": ["day", "country", "orders", "total", "largest"],
    "gold.by_segment": ["day", "segment", "orders", "total", "largest"],
    "gold.by_basket": ["basket", "orders", "total", "largest"],
    "gold.by_customer": ["customer", "orders", "total", "largest"],
    "gold.places": ["id", "day", "customer", "amount", "place"],
}
"""Gold table -> the compared columns."""

_WARMING = 5
"""Every so many cases are computed once, so that all code has run before the first that counts."""


def case_name(rows: int, change: str, table: str) -> str:
    """Return the name of a case."""
    return f"{table}, {rows:,} orders, {change}"


def main(work: Path, costs: Path, facts: Path) -> None:
    """Make the lakes, then compute each case both ways in turn."""
    start_process()
    asked = json.loads(work.read_text())
    folder, cases = Path(asked["folder"]), [tuple(case) for case in asked["cases"]]
    with own_session({}):
        for rows in sorted({rows for rows, *_ in cases}):
            base = Shop(folder / str(rows))
            base.create(rows)
            for table in sorted({table for *_, table in cases}):
                base.refresh(table)
            for change in sorted({change for _, change, _ in cases}):
                changed = Shop(linked_copy(base.folder, _changed(folder, rows, change)))
                changed.change(CHANGES[change].format(rows=rows))
        for number in range(1, asked["rounds"] + 2):
            for case in cases[:: 1 if number > 1 else _WARMING]:
                rows, change, table = case
                _measure(_changed(folder, rows, change), table, f"{case_name(*case)}/{number}", costs, facts)


def _changed(folder: Path, rows: int, change: str) -> Path:
    return folder / re.sub(r"\W+", "_", f"{rows} {change}")


def _measure(changed: Path, table: str, name: str, costs: Path, facts: Path) -> None:
    copies = {
        way: Shop(linked_copy(changed, changed.with_name(re.sub(r"\W+", "_", f"{name} {way}"))))
        for way in (INCREMENTAL, WHOLE)
    }
    with noted(costs, f"{name}/{WHOLE}"):
        copies[WHOLE].refresh(table, reprocess=True)
    # The run computes the touched groups whatever they cost; what it knew is judged afterwards.
    always = patch.multiple(RefreshCost, is_whole_cheaper=False, most_values=10**6)
    with always, noted(costs, f"{name}/{INCREMENTAL}"):
        report = copies[INCREMENTAL].refresh(table)
    relations = {way: f"delta_scan('{copy.paths.table(table)}')" for way, copy in copies.items()}
    require_same_digest(ROWS[table], relations)
    fact = {
        "name": name,
        "groups": report.rows.read,
        **{f"{which} files": len(newest_table(copies[WHOLE].paths.table(which)).files) for which in (SILVER, table)},
        **report.details["refresh"],
    }
    with facts.open("a") as out:
        out.write(f"{json.dumps(fact)}\n")
    for copy in copies.values():
        shutil.rmtree(copy.folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))

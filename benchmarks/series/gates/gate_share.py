"""Series: the job `silver_merge` with forty table rules and with none, day after day in one warm session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.gates.suite import rules
from benchmarks.merging.lakes import MILLRACE, OrderLakes, relations
from benchmarks.merging.orders import BRONZE, COLUMNS, INSERTS, LOADED, SILVER, Kind, batch, deliver, write_specs
from benchmarks.peers import Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import Side
from benchmarks.table_files import linked_copy
from millrace.contracts.job.args import Job

ROWS, UNCOUNTED = 10**6, 3
"""The orders before the first day, and the first days, which warm up: the first gate reads all rows."""

WITH, WITHOUT = "40 rules", "no rules"
TARGET = 1.25
"""The largest good ratio: the gate may cost a quarter of the layer's write."""


def run(bench: Bench) -> list[Result]:
    """Merge one batch of recent orders a day into two copies of a lake, whose jobs take turns in being the first."""
    lakes = OrderLakes(bench, ROWS)
    folder = lakes.folder / "gate-share"
    days = [f"{date.fromisoformat(LOADED) + timedelta(1 + day)}" for day in range(UNCOUNTED + bench.rounds)]
    for number, day in enumerate(days):
        deliver(folder / "landing", day, batch(Kind.RECENT, ROWS + number * INSERTS))
    sides = {
        side: (Millrace(side, tables=_specs(folder / side, count)), Place(folder / side / "lake", folder / "landing"))
        for side, count in ((WITH, 40), (WITHOUT, 0))
    }
    for _, place in sides.values():
        linked_copy(lakes.loaded()[MILLRACE].lake, place.lake)
    costs = lakes.in_one_session("gate-share", list(_work(sides, days)), lakes.millrace(large_load=True))
    counted = {side: Side(tuple(costs[f"{SILVER} {day} {side}"] for day in days[UNCOUNTED:])) for side in sides}
    rows = require_same_digest(tuple(COLUMNS), relations({side: place for side, (_, place) in sides.items()}))
    facts = {"rows": rows, "share of the gate": round(counted[WITH].cpu_s / counted[WITHOUT].cpu_s - 1, 3)}
    return [Result("silver_merge of 10,000 rows, judged by 40 rules", WITH, WITHOUT, counted, TARGET, facts)]


def _work(sides: dict[str, tuple[Millrace, Place]], days: list[str]) -> Iterator[dict[str, object]]:
    """Return the jobs of both sides; every other day the other side comes first, and pays for what both share."""
    for number, day in enumerate(days):
        for job, table in ((Job.BRONZE_INGEST, BRONZE), (Job.SILVER_MERGE, SILVER)):
            for side in sorted(sides, reverse=number % 2 == 0):
                millrace, place = sides[side]
                argv = millrace.arguments(job, table, place, day).to_argv()
                yield {"name": f"{table} {day} {side}", "job": job, "argv": argv}


def _specs(folder: Path, count: int) -> Path:
    """Write the specs of the orders, with so many table rules on the silver table."""
    tables = write_specs(folder / "tables")
    [spec] = tables.glob("silver/*/orders.yaml")
    of_columns = rules(("id", "customer", "amount"), ("status", "country", "md5"), ("ts",))
    stated = [{rule.name: rule.arguments, "action": "fail"} for rule in of_columns] + _more_rules()
    document = {**yaml.safe_load(spec.read_text()), "expectations": stated[:count]}
    spec.write_text(yaml.safe_dump(document, sort_keys=False))
    return tables


def _more_rules() -> list[dict[str, Any]]:
    """Return ten rules on other figures than those of `suite.rules`."""
    bounds = {"min_value": "2021-01-01", "max_value": "2099-01-01"}
    of_figures: list[dict[str, Any]] = [
        {f"expect_column_{figure}_to_be_between": {"column": "ts", **bounds}} for figure in ("min", "max")
    ]
    lower: list[dict[str, Any]] = [
        {"expect_column_values_to_be_between": {"column": name, "min_value": least, "mostly": 0.5}}
        for name, least in {"id": 1, "customer": 1, "amount": 1, "ts": "2021-01-01"}.items()
    ]
    patterns = [
        {"expect_column_values_to_match_regex": {"column": name, "regex": f"^{pattern}+$"}}
        for name, pattern in {"status": "[a-z]", "country": "[A-Z]"}.items()
    ]
    short = [
        {"expect_column_value_lengths_to_be_between": {"column": name, "max_value": 9}}
        for name in ("status", "country")
    ]
    return [{**rule, "action": "fail"} for rule in [*of_figures, *lower, *patterns, *short]]

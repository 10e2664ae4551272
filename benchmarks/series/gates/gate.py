"""Series: the whole year into bronze, with forty table rules and with none."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost
from benchmarks.deliveries import YEAR, whole_year
from benchmarks.peers import Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from millrace.contracts.job.report import JobReport
from millrace.paths import OWN, RunPaths
from millrace.settings import Settings

TABLE, SPEC = "bronze.flight_events", Path("bronze/flights/flight_events.yaml")
RULES = 40
TARGET = 1.25
"""The largest good ratio: forty rules without a pattern may cost a quarter of the write."""


def run(bench: Bench) -> list[Result]:
    """Compare Millrace with itself."""
    landing = whole_year(bench.folder / "year", bench.folder / "year_source")
    folder = bench.fresh("gate")
    peers = [
        Millrace(name, tables=_specs(folder / name / "tables", rules))
        for name, rules in (("40 rules", RULES), ("no rules", 0))
    ]
    places = {peer.name: Place(folder / peer.name / "lake", landing) for peer in peers}
    runs = {peer.name: partial(_write, bench, peer, places[peer.name]) for peer in peers}
    sides = interleaved(runs, bench.rounds, bench.print_cost)
    rows = require_same_rows(TABLE, *(place.table(TABLE) for place in places.values()))
    judged = _report(places["40 rules"])
    if len(judged.checks) != RULES or not all(check.passed for check in judged.checks):
        raise RuntimeError(f"{TABLE} was not judged well by {RULES} rules: {judged.checks}")
    measured = f"the whole year into {TABLE}, judged by {RULES} table rules, against none"
    facts = {"rows": rows, "gate_s": judged.timings_s["gate"]}
    return [Result(measured, peers[0].name, peers[1].name, sides, TARGET, facts)]


def _write(bench: Bench, peer: Millrace, place: Place, _number: int) -> Cost:
    shutil.rmtree(place.lake, ignore_errors=True)
    return bench.write(peer, TABLE, place, YEAR)


def _specs(folder: Path, rules: int) -> Path:
    """Copy the project's specs to `folder`, with `rules` rules on the table's versions, and return it."""
    shutil.copytree(Settings().tables, folder)
    document = yaml.safe_load((folder / SPEC).read_text())
    rows_only = [rule for rule in document.get("expectations", []) if rule["action"] in ("quarantine", "drop")]
    document["expectations"] = [*rows_only, *_rules(document["columns"])[:rules]]
    (folder / SPEC).write_text(yaml.safe_dump(document, sort_keys=False))
    return folder


def _rules(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return two rules for each column, which its rows pass."""
    return [
        {name: {"column": column, **arguments}, "action": "fail"}
        for column, definition in columns.items()
        for name, arguments in (_PRESENT, _OF_TYPE.get(definition.get("type", "string"), _OF_NUMBERS))
    ]


_Rule = tuple[str, Mapping[str, object]]

_PRESENT: _Rule = ("expect_column_values_to_not_be_null", {"mostly": 0.001})
_OF_NUMBERS: _Rule = (
    "expect_column_values_to_be_between",
    {"min_value": -(10**6), "max_value": 10**6},
)
_OF_TYPE: dict[str, _Rule] = {
    "string": ("expect_column_value_lengths_to_be_between", {"min_value": 0, "max_value": 1000}),
    "timestamp": ("expect_column_values_to_be_between", {"min_value": "1910-01-01T00:00:00"}),
    "date": ("expect_column_values_to_be_between", {"min_value": "1910-01-01"}),
}


def _report(place: Place) -> JobReport:
    [path] = (RunPaths(place.lake / OWN).reports / "benchmark").rglob(f"{TABLE}.*.json")
    report = JobReport.load(path)
    if report is None:
        raise FileNotFoundError(f"{place.lake} has no report of {TABLE}")
    return report

"""Series 8: batches of 10,000 events merged into tables of 1 and 10 million orders."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.cost import Cost, measure
from benchmarks.merging.growth import exponent
from benchmarks.merging.lakes import MILLRACE, N, OrderLakes, Sides, relations
from benchmarks.merging.orders import CHANGED, COLUMNS, SILVER, Kind, batch
from benchmarks.peers import Place
from benchmarks.result import Result
from benchmarks.rounds import interleaved
from benchmarks.table_files import files_and_bytes, files_written, linked_copy, newest_commit
from include.contracts.job_args import Job

TINY, MILLION = 20_000, 1_000_000
TARGET_AT = {(10 * MILLION, Kind.RECENT): 0.1}
"""(rows, kind) -> the largest ratio of CPU-seconds that is good."""

TARGET_EXPONENT = {Kind.RECENT: 0.05, Kind.UNIFORM: 0.9}
BYTES_A_FILE = 64_000_000
Z_ORDERED, AS_LOADED = "Z-ordered into files of 64 MB", "as loaded"


@dataclass(frozen=True)
class Case:
    """One point: how many orders there are, how they lie, and which of them the batch is about."""

    rows: int
    layout: str
    kind: Kind

    @property
    def title(self) -> str:
        """It in one line."""
        return f"merge of 10,000 events, {self.kind}, into {self.rows:,} orders, {self.layout}"


def run(bench: Bench) -> list[Result]:
    """One and ten million orders."""
    return _grow(bench, (MILLION, 10 * MILLION))


def run_large(bench: Bench) -> list[Result]:
    """A hundred million as well."""
    return _grow(bench, (MILLION, 10 * MILLION, 100 * MILLION))


def _grow(bench: Bench, sizes: tuple[int, ...]) -> list[Result]:
    """Every kind into tables that lie in files of one size, and recent ones into tables as the sides load them."""
    cases = [Case(TINY, AS_LOADED, Kind.RECENT)]
    cases += [Case(rows, Z_ORDERED, kind) for rows in sizes for kind in Kind]
    cases += [Case(rows, AS_LOADED, Kind.RECENT) for rows in sizes]
    found = {case: _merged(bench, case) for case in cases}
    *results, last = found.values()
    return [*results, replace(last, facts={**last.facts, **_exponents(found, sizes)})]


def _merged(bench: Bench, case: Case) -> Result:
    bench.console.print(f"  {case.title}")
    lakes = OrderLakes(bench, case.rows)
    table = lakes.loaded() if case.layout == AS_LOADED else lakes.z_ordered(BYTES_A_FILE)
    kinds = (Kind.RECENT,) if case.layout == AS_LOADED else tuple(Kind)
    ready = lakes.with_batches(case.layout, table, {kind.value: batch(kind, case.rows) for kind in kinds})[case.kind]
    places = {side: Place(lakes.folder / "round" / side, place.landing) for side, place in ready.items()}
    before = {side: files_and_bytes(place.table(SILVER)) for side, place in ready.items()}
    sides = interleaved(
        {side: _merges(bench, lakes, side, ready, places) for side in (MILLRACE, N)},
        bench.rounds,
        bench.ended,
        uncounted=0,
    )
    facts: dict[str, Any] = {
        "rows after": require_same_digest(tuple(COLUMNS), relations(places)),
        "files before": before,
        "files written": {side: files_written(place.table(SILVER)) for side, place in places.items()},
        "commit": {side: newest_commit(place.table(SILVER)) for side, place in places.items()},
    }
    return Result(case.title, MILLRACE, N, sides, TARGET_AT.get((case.rows, case.kind)), facts)


def _merges(bench: Bench, lakes: OrderLakes, side: str, ready: Sides, places: Sides) -> Callable[[int], Cost]:
    """The whole process of one side's silver step, on a fresh copy."""
    place, millrace = places[side], lakes.millrace()

    def merge(number: int) -> Cost:
        linked_copy(ready[side].lake, place.lake)
        log = bench.folder / "logs" / f"merge-growth.{side}.{number}.log"
        if side == N:
            return measure(bench.naive.script("orders", place, CHANGED), bench.naive.environment(), log).whole
        return measure(millrace.job(Job.SILVER_MERGE, SILVER, place, CHANGED), millrace.environment(), log).whole

    return merge


def _exponents(found: dict[Case, Result], sizes: tuple[int, ...]) -> dict[str, str]:
    """How each side's cost grows, as it was measured, and without what a merge into a tiny table costs."""
    [tiny] = [result for case, result in found.items() if case.rows == TINY]
    series = {(case.layout, case.kind) for case in found if case.rows != TINY}
    said: dict[str, str] = {}
    for layout, kind in sorted(series):
        for side in (MILLRACE, N):
            costs = {rows: found[Case(rows, layout, kind)].sides[side].cpu_s for rows in sizes}
            whole, above = _said(exponent(costs)), _said(exponent(costs, tiny.sides[side].cpu_s))
            name = f"exponent of CPU-seconds, {side}, {kind}, {layout}"
            said[name] = f"{whole}; without the {tiny.sides[side].cpu_s:.1f} s of a tiny table {above}"
            if side == MILLRACE and kind in TARGET_EXPONENT:
                said[name] += f"; target {TARGET_EXPONENT[kind]}"
    return said


def _said(slope: float | None) -> str:
    return "none, nothing is left" if slope is None else f"{slope:.2f}"

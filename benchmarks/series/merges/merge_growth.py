"""Series 8: batches of 10,000 events merged into tables of 1 and 10 million orders."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.cost import Cost, measure
from benchmarks.merging.growth import exponent
from benchmarks.merging.lakes import MILLRACE, N, OrderLakes, Sides, relations
from benchmarks.merging.orders import CHANGED, COLUMNS, SILVER, Kind, batch
from benchmarks.peers import Place
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved
from benchmarks.table_files import files_and_bytes, files_written, linked_copy, newest_commit
from embedded.clone import CLONE
from millrace.contracts.job.args import Job
from millrace.control.maintenance.file_layout import LEAST_FILE

TINY, MILLION = 20_000, 1_000_000
WARM, DELTA_RS = "Millrace, warm", "delta-rs"
KEPT, ALIKE = "as each side keeps them", f"Z-ordered alike into files of {LEAST_FILE // 1024**2} MiB"
TARGETS = {
    (10 * MILLION, KEPT, Kind.RECENT, N): 0.1,
    (10 * MILLION, ALIKE, Kind.RECENT, DELTA_RS): 4.0,
}
"""(rows, layout, kind, against) -> the largest good ratio of CPU-seconds for Millrace's warm session."""

TARGET_EXPONENT = {Kind.RECENT: 0.05, Kind.UNIFORM: 0.9}


@dataclass(frozen=True)
class Case:
    """One point: the number of orders, their layout, and the orders of the batch."""

    rows: int
    layout: str
    kind: Kind

    @property
    def title(self) -> str:
        """The case in one line."""
        return f"merge of 10,000 events, {self.kind}, into {self.rows:,} orders, {self.layout}"

    @property
    def peers(self) -> tuple[str, ...]:
        """The sides to compare with; delta-rs only where it can skip most files, too."""
        return (N, DELTA_RS) if self.layout == ALIKE else (N,)


def run(bench: Bench, sizes: tuple[int, ...] = (MILLION, 10 * MILLION)) -> list[Result]:
    """Measure tables of these sizes: every kind with the sides' own layouts, and recent orders with equal layouts."""
    cases = [Case(TINY, KEPT, Kind.RECENT)]
    cases += [Case(rows, KEPT, kind) for rows in sizes for kind in Kind]
    cases += [Case(rows, ALIKE, Kind.RECENT) for rows in sizes]
    by_case = {case: _merged(bench, case) for case in cases}
    results = [result for case, sides in by_case.items() for result in _results(case, *sides)]
    results[-1].facts.update(_exponents({case: sides for case, (sides, _) in by_case.items()}, sizes))
    return results


def _merged(bench: Bench, case: Case) -> tuple[dict[str, Side], dict[str, Any]]:
    """Return the rounds of each side, and the facts about them."""
    bench.console.print(f"  {case.title}")
    lakes = OrderLakes(bench, case.rows)
    table = lakes.loaded() if case.layout == KEPT else lakes.z_ordered(LEAST_FILE)
    kinds = tuple(Kind) if case.layout == KEPT else (Kind.RECENT,)
    ready = lakes.with_batches(case.layout, table, {kind.value: batch(kind, case.rows) for kind in kinds})[case.kind]
    merges = _Merges(bench, lakes, ready, case.kind)
    sides = interleaved(
        {side: partial(merges.run, side) for side in (MILLRACE, WARM, *case.peers)},
        bench.rounds,
        bench.print_cost,
        uncounted=0,
    )
    places = {side: merges.place(side) for side in sides}
    facts = {
        "rows after": require_same_digest(tuple(COLUMNS), relations(places)),
        "files before": {side: files_and_bytes(place.table(SILVER)) for side, place in ready.items()},
        "files written": {side: files_written(place.table(SILVER)) for side, place in places.items()},
        "commit": {side: newest_commit(place.table(SILVER)) for side, place in places.items()},
    }
    return sides, facts


def _results(case: Case, sides: dict[str, Side], facts: dict[str, Any]) -> list[Result]:
    cold = [Result(case.title, MILLRACE, N, sides, None, facts)]
    title, layout = f"{case.title}, in a warm session", (case.rows, case.layout, case.kind)
    return cold + [Result(title, WARM, peer, sides, TARGETS.get((*layout, peer))) for peer in case.peers]


@dataclass(frozen=True)
class _Merges:
    """The silver step of each side, on a fresh copy of its lake."""

    bench: Bench
    lakes: OrderLakes
    ready: Sides
    kind: Kind

    def place(self, side: str) -> Place:
        """Return the place of a side: a copy of N's table, unless it is Millrace."""
        return Place(self.lakes.folder / "round" / side, self._original(side).landing)

    def run(self, side: str, number: int) -> Cost:
        """Return the cost of a merge: the whole process, or the second merge of a session."""
        place = self.place(side)
        linked_copy(self._original(side).lake, place.lake)
        if side == WARM:
            return self._in_a_warm_session(place)
        log = self.bench.folder / "logs" / f"merge-growth.{side}.{number}.log"
        return measure(*self._process(side, place), log).whole

    def _process(self, side: str, place: Place) -> tuple[list[str], Mapping[str, str]]:
        """Return command and environment of a side."""
        naive, millrace = self.bench.naive, self.lakes.millrace()
        if side == N:
            return naive.script("orders", place, CHANGED), naive.environment()
        if side == DELTA_RS:
            script = CLONE / "benchmarks" / "merging" / "by_delta_rs.py"
            return [sys.executable, str(script), str(place.lake), CHANGED], {**os.environ, "PYTHONPATH": str(CLONE)}
        return millrace.job(Job.SILVER_MERGE, SILVER, place, CHANGED), millrace.environment()

    def _in_a_warm_session(self, place: Place) -> Cost:
        before = Place(linked_copy(self._original(WARM).lake, place.lake.with_name("warm-up")), place.landing)
        merges = {"warm-up": before, "counts": place}
        work = [self.lakes.work(Job.SILVER_MERGE, SILVER, name, at, CHANGED) for name, at in merges.items()]
        return self.lakes.in_one_session("warm", work, self.lakes.millrace(large_load=True))["counts"]

    def _original(self, side: str) -> Place:
        return self.ready[MILLRACE if side in (MILLRACE, WARM) else N]


def _exponents(by_case: Mapping[Case, Mapping[str, Side]], sizes: tuple[int, ...]) -> dict[str, str]:
    """Return the growth of each side's cost, as measured and without the cost of a merge into a tiny table."""
    [tiny] = [sides for case, sides in by_case.items() if case.rows == TINY]
    exponents: dict[str, str] = {}
    for layout, kind in sorted({(case.layout, case.kind) for case in by_case if case.rows != TINY}):
        for side in (MILLRACE, WARM, N):
            costs = {rows: by_case[Case(rows, layout, kind)][side].cpu_s for rows in sizes}
            whole, above = _format_slope(exponent(costs)), _format_slope(exponent(costs, tiny[side].cpu_s))
            name = f"exponent of CPU-seconds, {side}, {kind}, {layout}"
            exponents[name] = f"{whole}; without the {tiny[side].cpu_s:.1f} s of a tiny table {above}"
            if side == WARM and kind in TARGET_EXPONENT:
                exponents[name] += f"; target {TARGET_EXPONENT[kind]}"
    return exponents


def _format_slope(slope: float | None) -> str:
    return "none, nothing is left" if slope is None else f"{slope:.2f}"

"""Series 9: the sixteen shapes of Delta's own merge benchmark, against a plain MERGE of the same change set."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_digest
from benchmarks.cost import Cost
from benchmarks.merging.growth import geometric_mean
from benchmarks.merging.lakes import MILLRACE, N, OrderLakes, Sides, relations
from benchmarks.merging.orders import CHANGED, COLUMNS, SILVER
from benchmarks.merging.shapes import SHAPES
from benchmarks.peers import Place
from benchmarks.result import Result
from benchmarks.rounds import Side, cpu_ratio, interleaved, wall_ratio
from benchmarks.table_files import files_and_bytes, key_ranges, linked_copy, newest_commit
from millrace.contracts.job.args import Job

MILLION = 1_000_000
FILES = 40
TARGET, TARGET_MEAN = 1.1, 0.8
"""The largest good ratios of CPU-seconds: for one shape, and for the geometric mean of all."""

N_ALIKE = "N into the same table"
"""The plain MERGE into Millrace's table, with its thirteen columns, change feed and statistics."""

_LAKE_OF = {MILLRACE: MILLRACE, N: N, N_ALIKE: MILLRACE}
"""Side -> the owner of the table that it merges into."""

_WARM_UP = "warm-up"


def run(bench: Bench, rows: int = 10 * MILLION) -> list[Result]:
    """Measure a table of so many orders; ten million are half a gigabyte."""
    lakes = OrderLakes(bench, rows)
    equal = lakes.of_equal_files(FILES)
    files = key_ranges(equal[MILLRACE].table(SILVER), "id")
    change_sets = {shape.name: shape.change_set(files, rows) for shape in SHAPES}
    ready = lakes.with_batches(f"{FILES} files", equal, change_sets)
    places = {
        shape: {side: Place(lakes.folder / "round" / shape / side, sides[MILLRACE].landing) for side in _LAKE_OF}
        for shape, sides in ready.items()
    }
    costs: dict[str, dict[str, list[Cost]]] = {shape: {side: [] for side in _LAKE_OF} for shape in ready}
    sessions = {side: _session(lakes, side, ready, places, costs) for side in _LAKE_OF}
    whole = interleaved(sessions, bench.rounds, bench.print_cost, uncounted=0)
    before = {side: files_and_bytes(place.table(SILVER)) for side, place in equal.items()}
    results = [_result(shape, costs[shape], places[shape]) for shape in ready]
    return [*results, _all_shapes(rows, whole, results, before)]


def _session(
    lakes: OrderLakes,
    side: str,
    ready: Mapping[str, Sides],
    places: Mapping[str, Sides],
    costs: dict[str, dict[str, list[Cost]]],
) -> Callable[[int], Cost]:
    """Run all shapes in one session, each on a fresh copy; the first one also runs before, uncounted."""
    first = next(iter(ready))
    warm_up = Place(lakes.folder / "round" / _WARM_UP / side, places[first][side].landing)
    runs = {_WARM_UP: warm_up, **{shape: places[shape][side] for shape in ready}}

    def run(number: int) -> Cost:
        for name, place in runs.items():
            linked_copy(ready[first if name == _WARM_UP else name][_LAKE_OF[side]].lake, place.lake)
        found = _run(lakes, side, runs)
        found.pop(_WARM_UP)
        for shape, cost in found.items():
            costs[shape][side].append(cost)
        return sum(found.values(), Cost(0, 0))

    return run


def _run(lakes: OrderLakes, side: str, runs: Mapping[str, Place]) -> dict[str, Cost]:
    if side == MILLRACE:
        work = [lakes.work(Job.SILVER_MERGE, SILVER, name, place, CHANGED) for name, place in runs.items()]
        # With both of the JVM's compilers, as a warm server and N have them.
        return lakes.in_one_session("silver", work, lakes.millrace(large_load=True))
    clauses = {shape.name: shape.clauses for shape in SHAPES} | {_WARM_UP: SHAPES[0].clauses}
    merges: list[dict[str, object]] = [
        {"name": name, "lake": str(place.lake), "clauses": clauses[name]} for name, place in runs.items()
    ]
    return lakes.in_a_plain_session(f"plain {side}", merges)


def _result(shape: str, costs: Mapping[str, list[Cost]], places: Sides) -> Result:
    sides = {side: Side(tuple(found)) for side, found in costs.items()}
    facts = {
        "rows after": require_same_digest(tuple(COLUMNS), relations(places)),
        f"CPU ratio to {N_ALIKE}": f"{cpu_ratio(sides[MILLRACE], sides[N_ALIKE]).median:.2f}, target {TARGET}",
        "commit": {side: newest_commit(place.table(SILVER)) for side, place in places.items()},
    }
    return Result(shape, MILLRACE, N, sides, TARGET, facts)


def _all_shapes(rows: int, whole: dict[str, Side], results: list[Result], before: dict[str, str]) -> Result:
    facts = {"files of the target": before, **_against(N, results), **_against(N_ALIKE, results)}
    return Result(f"all {len(results)} shapes on {rows:,} orders", MILLRACE, N, whole, None, facts)


def _against(peer: str, results: list[Result]) -> dict[str, str]:
    pairs = {result.measured: (result.sides[MILLRACE], result.sides[peer]) for result in results}
    cpu = {shape: cpu_ratio(*pair).median for shape, pair in pairs.items()}
    wall = geometric_mean([wall_ratio(*pair).median for pair in pairs.values()])
    mean, worst = geometric_mean(list(cpu.values())), max(cpu, key=lambda shape: cpu[shape])
    return {
        f"geometric mean of the CPU ratios to {peer}": f"{mean:.2f}, target {TARGET_MEAN}",
        f"geometric mean of the wall ratios to {peer}": f"{wall:.2f}",
        f"worst shape against {peer}": f"{worst}: {cpu[worst]:.2f}, target {TARGET}",
    }

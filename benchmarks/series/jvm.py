"""Series 4: the whole year into bronze and silver, with the JVM options of a small machine and without them."""

from __future__ import annotations

from functools import partial

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost
from benchmarks.deliveries import YEAR, whole_year
from benchmarks.peers import Millrace, Place
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved
from millrace.spark_conf import ONE_COMPILER, SMALL_MACHINE

TABLES = ("bronze.flight_events", "silver.flights")


def run(bench: Bench) -> list[Result]:
    """Compare Millrace with itself, for each layer."""
    landing = whole_year(bench.folder / "year", bench.folder / "year_source")
    peers = (Millrace("with the options"), Millrace("without them", without=f"{SMALL_MACHINE} {ONE_COMPILER}"))
    places = {peer.name: Place(bench.folder / "jvm" / peer.name.replace(" ", "_"), landing) for peer in peers}
    layers: dict[str, dict[str, list[Cost]]] = {table: {peer.name: [] for peer in peers} for table in TABLES}
    runs = {peer.name: partial(_build, bench, peer, places[peer.name], layers) for peer in peers}
    interleaved(runs, bench.rounds, bench.print_cost)
    rows = {table: require_same_rows(table, *(place.table(table) for place in places.values())) for table in TABLES}
    return [
        Result(
            f"the whole year into {table}, with the JVM options of a small machine, against without",
            peers[0].name,
            peers[1].name,
            {name: Side(tuple(costs[1:])) for name, costs in layers[table].items()},
            facts={"rows": rows[table]},
        )
        for table in TABLES
    ]


def _build(bench: Bench, peer: Millrace, place: Place, layers: dict[str, dict[str, list[Cost]]], _number: int) -> Cost:
    bench.fresh(*place.lake.relative_to(bench.folder).parts)
    costs = [bench.write(peer, table, place, YEAR) for table in TABLES]
    for table, cost in zip(TABLES, costs, strict=True):
        layers[table][peer.name].append(cost)
    return sum(costs[1:], costs[0])

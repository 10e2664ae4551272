"""Series 1: from the start of a cold process to the first committed write of bronze."""

from __future__ import annotations

from functools import partial

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost, measure
from benchmarks.deliveries import DAY, one_day
from benchmarks.peers import Millrace, Peer, Place
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved

TABLE = "bronze.flight_events"
TARGET = 0.6


def run(bench: Bench) -> list[Result]:
    """Let both sides load one day into a new lake; rows are compared before a time counts."""
    landing = one_day(bench.folder / "day")
    places = {peer.name: Place(bench.folder / "start" / peer.name, landing) for peer in (Millrace(), bench.naive)}
    whole: dict[str, list[Cost]] = {name: [] for name in places}
    peers: tuple[Peer, ...] = (Millrace(), bench.naive)
    runs = {peer.name: partial(_load, bench, peer, places[peer.name], whole[peer.name]) for peer in peers}
    sides = interleaved(runs, bench.rounds, bench.print_cost)
    rows = require_same_rows(TABLE, *(place.table(TABLE) for place in places.values()))
    ends = {name: Side(tuple(costs[1:])) for name, costs in whole.items()}
    return [
        Result("start to the first committed write, cold", "Millrace", "N", sides, TARGET, {"rows": rows}),
        Result("the same, to the end of the process", "Millrace", "N", ends, None, {"rows": rows}),
    ]


def _load(bench: Bench, peer: Peer, place: Place, whole: list[Cost], number: int) -> Cost:
    bench.fresh("start", peer.name)
    log = bench.folder / "logs" / f"start.{peer.name}.{number}.log"
    command = peer.writer(TABLE, place, DAY)
    measured = measure(command, peer.environment(), log, place.commit(TABLE, peer.first_data_version))
    whole.append(measured.whole)
    return measured.until or measured.whole

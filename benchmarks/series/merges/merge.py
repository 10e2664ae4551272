"""Series 3: 10,000 recent events merged into the silver table of the whole year."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.comparison import require_same_rows
from benchmarks.cost import Cost
from benchmarks.deliveries import RECENT, RECENT_ROWS, YEAR, whole_year
from benchmarks.layout import z_order
from benchmarks.peers import Millrace, Peer, Place
from benchmarks.result import Result
from benchmarks.rounds import Side, interleaved
from benchmarks.table_files import files_and_bytes, newest_commit

AS_LOADED = "as loaded"
BRONZE, SILVER = "bronze.flight_events", "silver.flights"
TARGET = 0.5
BYTES_A_FILE = {AS_LOADED: 0, "files of 1 MB, Z-ordered by key": 1_000_000}
"""The layout of the full table: as loaded, or in as many files as a table 100 times as large has in files of 100 MB."""


def run(bench: Bench) -> list[Result]:
    """Let both sides load the year, then merge the last events into copies of that table, in each layout."""
    landing = whole_year(bench.folder / "year", bench.folder / "year_source")
    peers: tuple[Peer, ...] = (Millrace(), bench.naive)
    for peer in peers:
        _load_year(bench, peer, Place(bench.folder / "merge" / peer.name / "loaded", landing))
    return [_merge(bench, peers, landing, layout) for layout in BYTES_A_FILE]


def _load_year(bench: Bench, peer: Peer, place: Place) -> None:
    """Load the year into bronze and silver, and the recent events only into bronze; a loaded lake does not change."""
    done = place.lake / "loaded"
    if done.exists():
        return
    shutil.rmtree(place.lake, ignore_errors=True)
    bench.console.print(f"  {peer.name} loads the year")
    for table, day in ((BRONZE, YEAR), (SILVER, YEAR), (BRONZE, RECENT)):
        bench.write(peer, table, place, day)
    done.touch()


def _merge(bench: Bench, peers: tuple[Peer, ...], landing: Path, layout: str) -> Result:
    bench.console.print(f"  the full table: {layout}")
    full = {peer.name: _laid_out(bench, peer, landing, layout) for peer in peers}
    before = {name: files_and_bytes(place.table(SILVER)) for name, place in full.items()}
    round_of = {peer.name: Place(bench.folder / "merge" / peer.name / "round", landing) for peer in peers}
    runs = {peer.name: partial(_write, bench, peer, full[peer.name], round_of[peer.name]) for peer in peers}
    sides: dict[str, Side] = interleaved(runs, bench.rounds, bench.print_cost)
    facts: dict[str, Any] = {
        "rows of the full table": require_same_rows(SILVER, *(place.table(SILVER) for place in round_of.values())),
        "files before": before,
        "commit": {name: newest_commit(place.table(SILVER)) for name, place in round_of.items()},
    }
    title = f"merge of {RECENT_ROWS:,} recent rows into the full-year table, {layout}"
    return Result(title, "Millrace", "N", sides, TARGET, facts)


def _write(bench: Bench, peer: Peer, full: Place, place: Place, _number: int) -> Cost:
    shutil.rmtree(place.lake, ignore_errors=True)
    shutil.copytree(full.lake, place.lake)
    return bench.write(peer, SILVER, place, RECENT)


def _laid_out(bench: Bench, peer: Peer, landing: Path, layout: str) -> Place:
    """Return the lake with its full table in the layout, made by the same statement for both sides."""
    loaded = Place(bench.folder / "merge" / peer.name / "loaded", landing)
    if not BYTES_A_FILE[layout]:
        return loaded
    place = Place(bench.fresh("merge", peer.name, "laid_out"), landing)
    shutil.copytree(loaded.lake, place.lake)
    z_order(bench, place.table(SILVER), ("flight_id", "dest"), BYTES_A_FILE[layout])
    return place

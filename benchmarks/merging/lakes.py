"""Lakes with a table of orders, made once: as each side loads it, in other layouts, and with a batch to merge."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.cost import Cost, measure, read_noted
from benchmarks.layout import z_order
from benchmarks.merging.orders import (
    BRONZE,
    CHANGED,
    LOADED,
    SILVER,
    deliver,
    deliver_arrivals,
    write_specs,
)
from benchmarks.peers import Millrace, Place
from benchmarks.table_files import bytes_in, key_ranges, linked_copy
from embedded.clone import CLONE
from millrace.contracts.job.args import Job

MILLRACE, N = "Millrace", "N"
Sides = Mapping[str, Place]
"""Side -> its place. N's lake has the same bronze table, file by file."""

_MANY_ROWS = 1_000_000
_PATIENCE_OF_SESSION_S = 2 * 3600.0


class OrderLakes:
    """The lakes whose tables have a given number of rows.

    Args:
        bench: where to work.
        rows: how many orders there are before the batch.
    """

    def __init__(self, bench: Bench, rows: int) -> None:
        self._bench = bench
        self.rows = rows
        self.folder = bench.folder / "orders" / str(rows)

    def loaded(self) -> Sides:
        """Return the lakes as each side loads the orders in one batch; Millrace's after its own maintenance."""
        return self._kept("loaded", self._load)

    def z_ordered(self, bytes_a_file: int) -> Sides:
        """Return the loaded tables, Z-ordered by key into files of about equal bytes by the same statement."""
        return self._kept(f"z-ordered {bytes_a_file}", lambda folder: self._z_order(folder, bytes_a_file))

    def of_equal_files(self, files: int) -> Sides:
        """Return Millrace's table Z-ordered by key into a number of files, and a plain table with the same files."""
        return self._kept(f"{files} files", lambda folder: self._equal_files(folder, files))

    def with_batches(self, name: str, sides: Sides, batches: Mapping[str, str]) -> dict[str, Sides]:
        """Return copies with one batch each in the bronze table: name of the batch -> copies.

        Args:
            name: what the lakes that are copied are called.
            sides: these lakes.
            batches: name -> SQL of the events.
        """
        folder = self.folder / "with batches" / name
        made: dict[str, Sides] = {batch: self._places(folder / batch, self._landing(batch)) for batch in batches}
        if not (folder / "complete").exists():
            self._load_batches(name, sides, made, batches)
            (folder / "complete").touch()
        return made

    def in_one_session(self, name: str, work: list[dict[str, object]], millrace: Millrace) -> dict[str, Cost]:
        """Return the cost of each of Millrace's jobs in one session."""
        application = CLONE / "benchmarks" / "merging" / "in_one_session.py"
        return self._costs(name, work, lambda *paths: millrace.application(application, *paths), millrace.environment())

    def in_a_plain_session(self, name: str, work: list[dict[str, object]]) -> dict[str, Cost]:
        """Return the cost of each plain merge in one session."""
        application, naive = CLONE / "benchmarks" / "merging" / "plain_merges.py", self._bench.naive
        return self._costs(name, work, lambda *paths: naive.application(application, *paths), self._plain_environment())

    def _costs(
        self,
        name: str,
        work: list[dict[str, object]],
        command: Callable[[str, str], list[str]],
        environment: Mapping[str, str],
    ) -> dict[str, Cost]:
        """Run a command with `work`, and read the cost of each part."""
        work_file, costs = self.folder / f"{name}.work.jsonl", self.folder / f"{name}.costs.jsonl"
        work_file.write_text("".join(f"{json.dumps(part)}\n" for part in work))
        costs.unlink(missing_ok=True)
        measure(command(str(work_file), str(costs)), environment, self._log(name), patience_s=_PATIENCE_OF_SESSION_S)
        return read_noted(costs)

    def millrace(self, *, large_load: bool = False) -> Millrace:
        """Return Millrace with the specs of the orders, for a large or a small load."""
        return Millrace(tables=write_specs(self.folder / "tables"), large_load=large_load)

    def _plain_environment(self) -> dict[str, str]:
        """Return the environment of plain Spark scripts that import the benchmarks."""
        return {**self._bench.naive.environment(), "PYTHONPATH": str(CLONE)}

    def work(self, job: Job, table: str, name: str, place: Place, day: str) -> dict[str, object]:
        """Return a job of Millrace for `in_one_session`."""
        return {"name": name, "job": job, "argv": self.millrace().arguments(job, table, place, day).to_argv()}

    def _load(self, folder: Path) -> None:
        landing = self.folder / "landing"
        deliver_arrivals(landing, self.rows)
        places, millrace = self._places(folder, landing), self.millrace(large_load=self.rows >= _MANY_ROWS)
        self._bench.console.print(f"  {self.rows:,} orders are loaded")
        for job, table in ((Job.BRONZE_INGEST, BRONZE), (Job.SILVER_MERGE, SILVER), (Job.TABLE_OPTIMIZE, SILVER)):
            command = millrace.job(job, table, places[MILLRACE], LOADED)
            measure(command, millrace.environment(), self._log(f"load.{job}"))
        self._link_bronze(places)
        naive = self._bench.naive
        measure(naive.script("orders", places[N], LOADED), naive.environment(), self._log("load.N"))

    def _z_order(self, folder: Path, bytes_a_file: int) -> None:
        loaded, places = self.loaded(), self._places(folder, self.folder / "landing")
        for side, place in places.items():
            linked_copy(loaded[side].lake, place.lake)
            millrace = self.millrace(large_load=self.rows >= _MANY_ROWS) if side == MILLRACE else None
            z_order(self._bench, place.table(SILVER), ("id",), bytes_a_file, millrace)

    def _equal_files(self, folder: Path, files: int) -> None:
        loaded, places = self.loaded(), self._places(folder, self.folder / "landing")
        table = places[MILLRACE].table(SILVER)
        linked_copy(loaded[MILLRACE].lake, places[MILLRACE].lake)
        z_order(self._bench, table, ("id",), bytes_in(table) // files, self.millrace(large_load=True))
        self._link_bronze(places)
        script = CLONE / "benchmarks" / "merging" / "plain_copy.py"
        arguments = (str(table), str(places[N].table(SILVER)), json.dumps(key_ranges(table, "id")))
        measure(self._bench.naive.application(script, *arguments), self._plain_environment(), self._log("plain_copy"))

    def _load_batches(self, name: str, sides: Sides, made: Mapping[str, Sides], batches: Mapping[str, str]) -> None:
        self._bench.console.print(f"  {len(made)} batches are put beside {self.rows:,} orders")
        for batch, places in made.items():
            deliver(self._landing(batch), CHANGED, batches[batch])
            for side, place in places.items():
                linked_copy(sides[side].lake, place.lake)
        ingest = [
            self.work(Job.BRONZE_INGEST, BRONZE, batch, places[MILLRACE], CHANGED) for batch, places in made.items()
        ]
        self.in_one_session(f"bronze {name}", ingest, self.millrace())
        for places in made.values():
            self._link_bronze(places)

    def _link_bronze(self, places: Sides) -> None:
        linked_copy(places[MILLRACE].table(BRONZE), places[N].table(BRONZE))

    def _kept(self, name: str, make: Callable[[Path], None]) -> Sides:
        folder = self.folder / name
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            make(folder)
            (folder / "complete").touch()
        return self._places(folder, self.folder / "landing")

    def _places(self, folder: Path, landing: Path) -> dict[str, Place]:
        return {side: Place(folder / side, landing) for side in (MILLRACE, N)}

    def _landing(self, batch: str) -> Path:
        return self.folder / "batches" / batch

    def _log(self, name: str) -> Path:
        return self._bench.folder / "logs" / f"orders.{self.rows}.{name}.log"


def relations(places: Sides) -> dict[str, str]:
    """Return both sides' silver tables as relations of DuckDB's SQL."""
    return {side: f"delta_scan('{place.table(SILVER)}')" for side, place in places.items()}

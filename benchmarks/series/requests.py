"""Series 12, in a bucket: the requests of a batch to the store, by engine and by kind of object."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.buckets.bucket_batches import BatchRequests, batches_in
from benchmarks.buckets.counting_s3 import SPARK
from benchmarks.cost import measure
from benchmarks.result import Result
from benchmarks.rounds import Side
from embedded.clone import CLONE

BATCHES, COUNTED = 34, 20
"""Batches of each table, and the number of last ones that count: from one Delta checkpoint to the next."""

TARGET = 60


def run(bench: Bench) -> Result:
    """Load day after day into a bronze and a silver table in a bucket.

    Raises:
        FailedRunError: a batch is not certified.
    """
    folder = bench.fresh("requests")
    command = [sys.executable, "-m", "benchmarks.buckets.bucket_batches", str(folder), str(BATCHES)]
    environment = {**os.environ, "PYTHONPATH": str(CLONE)}
    cost = measure(command, environment, bench.folder / "logs" / "requests.log").whole
    name = f"{BATCHES} batches of two tables in a bucket"
    return Result(name, name, name, {name: Side((cost,))}, facts=_facts(folder))


def _facts(folder: Path) -> dict[str, str]:
    facts = {}
    batches = [batch for batch in batches_in(folder) if batch.number > BATCHES - COUNTED]
    for table in dict.fromkeys(batch.table for batch in batches):
        of_table = [batch for batch in batches if batch.table == table]
        facts[f"requests a batch of {table}"] = _summary(of_table)
        together = sum((batch.by_place for batch in of_table), Counter[tuple[str, str]]())
        lines = (f"{who} {place} {count / len(of_table):.1f}" for (who, place), count in together.most_common())
        facts[f"requests a batch of {table}, by place"] = ", ".join(lines)
    return facts


def _summary(batches: Sequence[BatchRequests]) -> str:
    all_of_them = sum(batch.by_place.total() for batch in batches) / len(batches)
    of_spark = sum(count for batch in batches for (who, _), count in batch.by_place.items() if who == SPARK)
    spark = of_spark / len(batches)
    verdict = "met" if all_of_them <= TARGET else "missed"
    return f"{all_of_them:.0f}: {spark:.0f} of {SPARK}, {all_of_them - spark:.0f} of Millrace; {TARGET} is {verdict}"

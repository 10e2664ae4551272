"""A driver with a Spark of its own, as spark-submit starts one, whose executors are processes that can be killed.

    python -m tests.support.spark.classic_driver FOLDER MASTER

Runs a small lakehouse through trouble that other drivers and lost executors make; prints as JSON how each run ended.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import SparkSession

from include.contracts.job.report import JobReport
from include.settings import Settings
from include.spark_conf import launch_conf
from spark_jobs.layers.gold import gold
from spark_jobs.layers.silver import silver
from spark_jobs.protocol.batches import BatchWriter
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.lakehouse import Lakehouse, order

CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")


def state_tables(lakehouse: Lakehouse) -> None:
    """One chain of tables; gold has a measure for each kind of value, a map among them."""
    measures = {"orders": "count(*)", "amounts": "map_from_entries(collect_set(struct(o.order_id, o.amount)))"}
    lakehouse.specs(bronze_document(), silver_document(), gold_document(measures=measures))


def fenced(lakehouse: Lakehouse) -> dict[str, JobReport]:
    """A batch of gold whose number a rival takes at the last moment, while the lease is of no help."""
    write, run = gold.replace_where, BatchWriter.run
    rival: list[JobReport] = []

    def too_late(*arguments: Any) -> None:
        gold.replace_where = write
        rival.append(lakehouse.run(GOLD))
        write(*arguments)

    BatchWriter.run = lambda writer, _: writer.run_unleased()  # type: ignore[method-assign]
    gold.replace_where = too_late
    try:
        return {"fenced": lakehouse.run(GOLD), "rival": rival[0]}
    finally:
        BatchWriter.run, gold.replace_where = run, write  # type: ignore[method-assign]


def without_frozen_rows(lakehouse: Lakehouse) -> JobReport:
    """A batch of silver that loses its frozen rows between its last look and its commit, as with their executors."""
    merge = silver.merge_changes

    def lost_first(session: SparkSession, *arguments: Any) -> None:
        silver.merge_changes = merge
        lose_frozen_rows(session)
        merge(session, *arguments)

    silver.merge_changes = lost_first
    return lakehouse.run(SILVER, 2)


def lose_frozen_rows(session: SparkSession) -> None:
    """Have the only executor forget every block of frozen rows, or kill those executors that are processes."""
    frozen = list(session.sparkContext._jsc.getPersistentRDDs())
    assert frozen
    executors = [one for one in psutil.process_iter() if _is_executor(one, session.sparkContext.applicationId)]
    for process in executors:
        process.kill()
    if not session.sparkContext.master.startswith("local"):
        assert executors
        return
    for number in frozen:
        session.sparkContext._jsc.sc().env().blockManager().master().removeRdd(number, True)


def _is_executor(process: psutil.Process, application: str) -> bool:
    with suppress(psutil.Error):
        words = process.cmdline()
        return application in words and any("CoarseGrainedExecutorBackend" in word for word in words)
    return False


def main(folder: Path, master: str) -> None:
    """Run everything, and print what came of it."""
    jars = Settings().jars
    conf = {**launch_conf(jars, master), **dict.fromkeys(CLASS_PATHS, f"{jars}/*")}
    SparkSession.builder.master(master).config(map=conf).getOrCreate()
    lakehouse = Lakehouse(folder)
    state_tables(lakehouse)
    lakehouse.deliver(1, "a.json", [order(1, 5, 8), order(2, 7, 8)])
    first = lakehouse.run_all(1, BRONZE, SILVER, GOLD)
    ended: dict[str, JobReport] = dict(zip((BRONZE, SILVER, GOLD), first, strict=True))
    lakehouse.deliver(2, "a.json", [order(1, 6, 9), order(3, 1, 9)])
    lakehouse.run(BRONZE, 2)
    ended |= {"without frozen rows": without_frozen_rows(lakehouse), **fenced(lakehouse)}
    told = {name: (report.outcome, report.message, report.attempts) for name, report in ended.items()}
    rows = {SILVER: lakehouse.rows(SILVER, "order_id", "amount"), GOLD: lakehouse.rows(GOLD, "orders", "amounts")}
    print(json.dumps({"ended": told, "rows": rows}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])

"""A driver with its own Spark, as under spark-submit.

    python -m tests.support.spark.classic_driver FOLDER

It runs a small lakehouse while another driver and lost rows disturb it, and prints as JSON how each run ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from millrace.contracts.job.report import JobReport
from millrace.settings import Settings
from millrace.spark_conf import launch_conf
from millrace_spark.layers.gold import gold
from millrace_spark.layers.silver import silver
from millrace_spark.protocol.batches import BatchWriter
from tests.support.documents.specs import bronze_document, gold_document, silver_document
from tests.support.given import given
from tests.support.lakehouse import Lakehouse, order

CLASS_PATHS = ("spark.driver.extraClassPath", "spark.executor.extraClassPath")
BRONZE, SILVER, GOLD = ("bronze.orders", "silver.orders", "gold.revenue_daily")


def write_chain(lakehouse: Lakehouse) -> None:
    """Write the specs of one chain of tables; a measure of gold is a map."""
    measures = {
        "orders": "count(*)",
        "amounts": "map_from_entries(sort_array(collect_set(struct(o.order_id, o.amount))))",
    }
    lakehouse.specs(bronze_document(), silver_document(), gold_document(measures=measures))


def run_against_rival(lakehouse: Lakehouse) -> dict[str, JobReport]:
    """Run a batch of gold without a lease; a rival takes its number just before its write."""
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


def run_without_cached_rows(lakehouse: Lakehouse) -> JobReport:
    """Run a batch of silver that loses its cached rows just before its commit, as with their executors."""
    merge = silver.merge_changes

    def merge_without_cache(session: SparkSession, *arguments: Any) -> None:
        silver.merge_changes = merge
        drop_cached_rows(session)
        merge(session, *arguments)

    silver.merge_changes = merge_without_cache
    return lakehouse.run(SILVER, 2)


def drop_cached_rows(session: SparkSession) -> None:
    """Drop every block of cached rows from the only executor."""
    cached = list(session.sparkContext._jsc.getPersistentRDDs())
    assert cached
    for number in cached:
        session.sparkContext._jsc.sc().env().blockManager().master().removeRdd(number, True)


def main(folder: Path) -> None:
    """Run everything, and print the results."""
    jars, master = Settings().jars, "local[2]"
    conf = {**launch_conf(jars, master), **dict.fromkeys(CLASS_PATHS, f"{jars}/*")}
    conf["spark.sql.warehouse.dir"] = str(folder)
    SparkSession.builder.master(master).config(map=conf).getOrCreate()
    lakehouse = Lakehouse(folder)
    write_chain(lakehouse)
    given(lakehouse, BRONZE, [order(1, 5, 8), order(2, 7, 8)])
    lakehouse.run(SILVER)
    ended = {GOLD: lakehouse.run(GOLD)}
    given(lakehouse, BRONZE, [order(1, 6, 9), order(3, 1, 9)], 2)
    ended |= {"without frozen rows": run_without_cached_rows(lakehouse), **run_against_rival(lakehouse)}
    results = {name: (report.outcome, report.message, report.attempts) for name, report in ended.items()}
    rows = {SILVER: lakehouse.rows(SILVER, "order_id", "amount"), GOLD: lakehouse.rows(GOLD, "orders", "amounts")}
    print(json.dumps({"ended": results, "rows": rows}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))

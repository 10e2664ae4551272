"""``python -m benchmarks.buckets.bucket_batches FOLDER BATCHES [once|daily]``: days of two tables in a bucket, by one
driver; each table refuses one order, on the first day or each day, which then waits in its quarantine.

What each batch asked of the store is written to FOLDER/batches.jsonl, and each request to FOLDER/requests.jsonl.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import yaml
from pyspark import SparkConf
from pyspark.sql import SparkSession

from benchmarks.aged_lake import day
from benchmarks.buckets.counting_s3 import counting, requests_in
from embedded.servers.s3 import s3_bucket
from millrace.contracts.job.args import WRITER_OF_LAYER, JobArgs
from millrace.contracts.lake_path import lake_path
from millrace.errors import Outcome
from millrace.settings import Settings
from millrace.spark_conf import launch_conf
from millrace_spark.jobs.run_intervals import RUN
from millrace_spark.runtime.entrypoint import run_and_report

_COLUMNS = {
    "id": {"type": "bigint", "nullable": False},
    "amount": {"type": "int"},
    "at": {"type": "timestamp"},
}
_RULE = {"expect_table_row_count_to_be_between": {"min_value": 1}, "action": "fail", "reason": "it has rows"}
_REFUSED = {
    "bronze": {"expect_column_values_to_be_between": {"column": "amount", "max_value": 99}, "action": "quarantine"},
    "silver": {"expect_column_values_to_be_between": {"column": "amount", "min_value": 0}, "action": "quarantine"},
}
"""Layer -> the rule that an amount of 100, or of -1, does not meet."""

_DOCUMENTS = (
    {
        "table": "bronze.orders",
        "source": {"landing": "orders", "format": "json", "files": "*.json"},
        "columns": _COLUMNS,
        "expectations": [_RULE, {**_REFUSED["bronze"], "reason": "it is a toy"}],
    },
    {
        "table": "silver.orders",
        "source": "bronze.orders",
        "keys": ["id"],
        "sequence_by": ["at"],
        "columns": _COLUMNS,
        "expectations": [_RULE, {**_REFUSED["silver"], "reason": "it is no refund"}],
    },
)


@dataclass(frozen=True)
class BatchRequests:
    """The requests of one batch to the store.

    Attributes:
        number: of its day.
        table: its table.
        by_place: (engine, place) -> number of requests.
    """

    number: int
    table: str
    by_place: Counter[tuple[str, str]]


def run(folder: Path, batches: int, refusals: str = "") -> None:
    """Deliver and load one day after another; each table refuses an order `once`, `daily`, or never."""
    for document in _DOCUMENTS:
        layer, _, name = str(document["table"]).partition(".")
        spec = folder / "tables" / layer / "bench" / f"{name}.yaml"
        spec.parent.mkdir(parents=True, exist_ok=True)
        spec.write_text(yaml.safe_dump(document, sort_keys=False))
    log = folder / "requests.jsonl"
    log.touch()
    with s3_bucket("lake", counting(log)) as bucket:
        os.environ.update(bucket.environment)
        conf = SparkConf().setAll([*launch_conf(Settings().jars, "local[2]").items()])
        spark = SparkSession.builder.master("local[2]").config(conf=conf).getOrCreate()
        for number in range(1, batches + 1):
            _deliver(folder, number, refused=refusals == "daily" or (refusals == "once" and number == 1))
            for document in _DOCUMENTS:
                before = len(requests_in(log))
                _run(folder, str(document["table"]), number)
                requests = Counter((entry["engine"], _place(entry["key"])) for entry in requests_in(log)[before:])
                line = {"number": number, "table": document["table"], "by_place": [*requests.items()], "first": before}
                with (folder / "batches.jsonl").open("a") as file:
                    file.write(json.dumps(line) + "\n")
        spark.stop()


def batches_in(folder: Path) -> list[BatchRequests]:
    """Return the requests of each batch, in order."""
    with (folder / "batches.jsonl").open() as lines:
        batches = list(map(json.loads, lines))
    return [
        BatchRequests(
            batch["number"],
            batch["table"],
            Counter({(engine, place): count for (engine, place), count in batch["by_place"]}),
        )
        for batch in batches
    ]


def _place(key: str) -> str:
    """Return the table of a key, such as `ops/batches`, with a mark for its log."""
    parts = key.removeprefix("tables/").split("/")
    return "/".join(parts[:2]) + ("/_delta_log" if "_delta_log" in parts else "")


def _deliver(folder: Path, number: int, *, refused: bool) -> None:
    """Deliver twenty orders, half of them existing ones, and one that each table refuses."""
    file = folder / "landing" / "orders" / f"date={day(number).start:%Y-%m-%d}" / "orders.json"
    file.parent.mkdir(parents=True)
    at = f"{day(number).start:%Y-%m-%d}T00:00:00Z"
    rows = [{"id": 10 * number + index, "amount": index, "at": at} for index in range(20)]
    rows += [{"id": -number, "amount": amount, "at": at} for amount in (100, -1) if refused]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _run(folder: Path, table: str, number: int) -> None:
    job = WRITER_OF_LAYER[table.partition(".")[0]]
    args = JobArgs(
        table=table,
        interval_start=day(number).start,
        interval_end=day(number).end,
        run_id=f"day {number}",
        root=lake_path("s3://lake/tables"),
        landing=str(folder / "landing"),
        tables=folder / "tables",
        report=folder / "reports" / f"{table}.{number}.json",
    )
    report = run_and_report(job, RUN[job], args)
    if report.outcome is not Outcome.COMMITTED or report.certified_version != report.version:
        raise SystemExit(f"{table} of day {number}: {report.message}")


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])

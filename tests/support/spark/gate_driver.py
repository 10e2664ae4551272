"""A separate driver that checks a Delta table, and counts Spark's jobs in Spark's event log.

It prints as JSON: suite -> jobs, the results or how each rule was judged, and whether Great Expectations was imported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from include.contracts.spec.expectation import Action, Expectation
from include.control.ledger.states.measures import table_rows
from include.control.log.delta_log import USER_METADATA_KEY
from include.settings import Settings
from include.spark_conf import launch_conf
from spark_jobs.delta_io.reads import read_version
from spark_jobs.layers.gate import changed_rows
from spark_jobs.layers.gate.changed_rows import JudgedVersion, change_since, next_figures
from spark_jobs.quality.fused.one_pass import GATE_CONF
from spark_jobs.quality.suites import check_rules
from spark_jobs.runtime.session import own_session

COLUMNS = [f"c{number}" for number in range(20)]


def rule(name: str, **arguments: Any) -> Expectation:
    return Expectation(name=name, arguments=arguments, action=Action.FAIL)


def row_rules(limit: int) -> list[Expectation]:
    """Return 40 rules on rows; the half with `limit` can fail."""
    between = [
        rule("expect_column_values_to_be_between", column=name, min_value=0, max_value=limit) for name in COLUMNS
    ]
    present = [rule("expect_column_values_to_not_be_null", column=name, mostly=0.9) for name in COLUMNS]
    return between + present


def all_rules(limit: int) -> list[Expectation]:
    """Return these rules, rules on figures, and three rules that count values."""
    figures = [rule("expect_column_max_to_be_between", column=name, max_value=limit) for name in COLUMNS]
    unique = [rule("expect_column_values_to_be_unique", column=name) for name in ("c0", "c1")]
    together = rule("expect_compound_columns_to_be_unique", column_list=["c2", "c3"])
    return [*row_rules(limit), *figures, *unique, together, rule("expect_table_row_count_to_be_between", min_value=1)]


SUITES = {"one rule": row_rules(10**9)[:1], "40 rules": row_rules(10**9), "all rules": all_rules(100)}


def logged_events(events: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of Spark's event log."""
    for file in events.rglob("events_*"):
        with file.open() as lines:
            yield from map(json.loads, lines)


def check_changes(table: Path) -> dict[str, Any]:
    """Merge a batch, and check the version by what changed: suite -> how each rule was judged."""
    changed_rows.FEW_ROWS = -(10**9)  # all rows of this small table would cost less
    ways, before = {}, JudgedVersion(table, 0, "rules", table_rows(table, 0))
    suites = {"40 rules by the change": row_rules(10**9), "all rules by the change": all_rules(10**9)}
    with own_session(GATE_CONF) as session:
        session.sparkContext.setJobGroup("the batch", "the batch")
        lasting = check_rules(read_version(session, table, 0), all_rules(10**9)).lasting
        merge_batch(session, table)
        judged = JudgedVersion(table, 1, "rules", table_rows(table, 1))
        for name, suite in suites.items():
            session.sparkContext.setJobGroup(name, name)
            change = change_since(next_figures(before, None, lasting), judged, session)
            checks = check_rules(read_version(session, table, 1), suite, change=change).checks
            ways[name] = [check.judged_by for check in checks if check.passed]
    return ways


def merge_batch(session: SparkSession, table: Path) -> None:
    """Update some rows and insert some, as a batch."""
    metadata = json.dumps({USER_METADATA_KEY: {"token": "a batch"}})
    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", metadata)
    rows = session.range(100).selectExpr(*[f"id + {950 + place} AS {name}" for place, name in enumerate(COLUMNS)])
    rows.createOrReplaceTempView("batch")
    session.sql(
        f"MERGE INTO delta.`{table}` t USING batch s ON t.c0 = s.c0 "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    ).collect()


def main(folder: Path) -> None:
    """Write the table, check it by each suite, and print the counts."""
    events = folder / "events"
    events.mkdir()
    conf = launch_conf(Settings().jars, "local[2]")
    conf |= {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # as many jobs, and less CPU
    }
    spark = SparkSession.builder.master("local[2]").config(map=conf).getOrCreate()
    table = folder / "table"
    rows = spark.range(1000, numPartitions=4).selectExpr(
        *[f"id + {place} AS {name}" for place, name in enumerate(COLUMNS)]
    )
    rows.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(table))
    passed = dict[str, Any]()
    for name, suite in SUITES.items():
        with own_session(GATE_CONF) as session:
            session.sparkContext.setJobGroup(name, name)
            passed[name] = [check.passed for check in check_rules(read_version(session, table, 0), suite).checks]
    passed |= check_changes(table)
    spark.stop()
    jobs = dict.fromkeys(passed, 0)
    for event in logged_events(events):
        group = event.get("Properties", {}).get("spark.jobGroup.id")
        if event["Event"] == "SparkListenerJobStart" and group in jobs:
            jobs[group] += 1
    print(json.dumps({"jobs": jobs, "passed": passed, "imported": "great_expectations" in sys.modules}))  # noqa: T201


if __name__ == "__main__":
    main(Path(sys.argv[1]))
